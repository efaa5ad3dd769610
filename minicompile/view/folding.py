"""Folding: N equal neighbouring blocks of a model are drawn once, as "xN".

Two blocks are equal when, after renaming, they do the same: same operations, attributes, types and
parameter shapes, wired in the same way to each other and to what lies outside.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.view.units import Unit


@dataclass(frozen=True)
class Run:
    """`count` equal blocks from path `first` to path `last`, drawn as the first of them."""

    first: str
    last: str
    count: int


@dataclass(frozen=True)
class Folded:
    """The units that are drawn, the runs, and for every hidden value the one drawn in its place.

    `block` maps every value of a run to (first path of the run, number of the block).
    """

    units: list[Unit]
    runs: list[Run]
    stands_for: dict[str, str]
    block: dict[str, tuple[str, int]]


def fold(units: list[Unit]) -> Folded:
    """Find runs of two or more equal blocks and keep the first of each."""
    hidden: dict[str, str] = {}
    block: dict[str, tuple[str, int]] = {}
    runs: list[Run] = []
    dropped: set[str] = set()
    for blocks in _lists_of_blocks(units):
        for run in _equal_runs(blocks):
            if any(u.name in dropped for _, members in run for u in members):
                continue
            runs.append(Run(run[0][0], run[-1][0], len(run)))
            for number, (_, members) in enumerate(run):
                for kept, unit in zip(run[0][1], members):
                    hidden.update(zip(unit.writes, kept.writes))
                    block.update({w: (run[0][0], number) for w in unit.writes})
                    if number:
                        dropped.add(unit.name)
    return Folded([u for u in units if u.name not in dropped], runs, hidden, block)


Block = tuple[str, list[Unit]]  # its path, and what is in it


def _lists_of_blocks(units: list[Unit]) -> list[list[Block]]:
    """For every module whose children are numbered, its children in order; outermost modules first."""
    blocks: dict[str, dict[str, list[Unit]]] = {}
    for unit in units:
        path = unit.module.split(".")
        for depth, part in enumerate(path):
            if part.isdigit():
                parent, child = ".".join(path[:depth]), ".".join(path[: depth + 1])
                blocks.setdefault(parent, {}).setdefault(child, []).append(unit)
    outermost_first = sorted(blocks, key=lambda parent: parent.count(".") + bool(parent))
    return [list(blocks[parent].items()) for parent in outermost_first]


def _equal_runs(blocks: list[Block]) -> list[list[Block]]:
    """Maximal runs of at least two neighbours that are equal."""
    runs: list[list[Block]] = []
    signature = None
    for path, members in blocks:
        this = _signature(members)
        if runs and this == signature:
            runs[-1].append((path, members))
        else:
            runs.append([(path, members)])
        signature = this
    return [run for run in runs if len(run) > 1]


def _signature(members: list[Unit]) -> tuple[tuple[object, ...], ...]:
    """What a block does, with its values numbered in order of appearance."""
    inside: dict[str, tuple[str, int]] = {}
    for unit in members:
        for w in unit.writes:
            inside[w] = ("in", len(inside))
    outside: dict[str, tuple[str, int]] = {}
    result = []
    for unit in members:
        for r in unit.reads:
            if r not in inside:
                outside.setdefault(r, ("out", len(outside)))
        wiring = tuple(inside.get(r) or outside[r] for r in unit.reads)
        result.append((unit.letter, unit.shape, len(unit.writes), wiring))
    return tuple(result)
