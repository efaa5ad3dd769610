"""Drawings from further away: many boxes closed to one, where a picture would be too large to read."""

from __future__ import annotations

from dataclasses import replace

from minicompile.view.style import shorten
from minicompile.view.units import RANK, Unit


def close_calls(units: list[Unit]) -> list[Unit]:
    """The same drawing from further away: the primitives of one call closed to one box."""
    closed: dict[str, list[Unit]] = {}
    for unit in units:
        closed.setdefault(unit.source if unit.call else unit.name, []).append(unit)
    return [_call(members) if len(members) > 1 else members[0] for members in closed.values()]


def _call(members: list[Unit]) -> Unit:
    last = members[-1]
    call, _, place = last.call.partition("  ")
    body = " + ".join(dict.fromkeys(u.title for u in members if u.letter not in "LC"))
    notes = tuple(dict.fromkeys(n for u in members for n in u.notes))
    made = _joined(members, last.name)
    return replace(
        made, title=call, plain=place, detail=last.detail, notes=(shorten(body, 44), *notes)
    )


def close_modules(units: list[Unit], depth: int) -> list[Unit]:
    """From further still: each module of this depth closed to one box."""
    closed: dict[str, list[Unit]] = {}
    for unit in units:
        path = ".".join(unit.module.split(".")[:depth])
        closed.setdefault(path or unit.name, []).append(unit)
    return [_module(path, members) for path, members in closed.items()]


def _module(path: str, members: list[Unit]) -> Unit:
    if len(members) == 1:
        return members[0]
    made = _joined(members, f"module_{path}")
    detail = f"{len(members)} boxes, closed"
    outside = path.rpartition(".")[0]
    return replace(made, title=path, plain="", detail=detail, notes=(), module=outside, call="")


def _joined(members: list[Unit], name: str) -> Unit:
    """One unit that reads and writes what the members do; its kind is that of the heaviest."""
    inside = {w for u in members for w in u.writes}
    reads = dict.fromkeys(r for u in members for r in u.reads if r not in inside)
    return replace(
        min(members, key=lambda u: RANK.find(u.letter)),
        name=name,
        reads=tuple(reads),
        writes=tuple(w for u in members for w in u.writes),
        shape=tuple(part for u in members for part in u.shape),
    )
