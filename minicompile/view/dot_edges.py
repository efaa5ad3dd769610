"""The edges of a drawn graph: data, words of layouts, verdicts of fusion, and those that only hold places."""

from __future__ import annotations

import textwrap

from minicompile.ir.graph import Graph, Verdict
from minicompile.ir.types import TensorType
from minicompile.view import style
from minicompile.view.scene import Edge, Scene
from minicompile.view.style import caption, color, identifier, words
from minicompile.view.units import Unit


def dot_edge(picture: Scene, e: Edge) -> str:
    """One edge as DOT."""
    start, end = identifier("n", e.start), identifier("n", e.end)
    if e.back:
        count = max((run.count for run in picture.runs), default=2) - 1
        label = f"label=<{caption(f' next block, {count} times', italic=True)}>"
        return style.edge(start, end, "constraint=false style=dotted", color("muted"), label)
    graph = picture.graph
    if (
        graph.groups
        and not e.end.startswith(("return", "write_"))
        and e.start not in _inputs(graph)
    ):
        return _fusion_edge(picture, e, start, end)
    return style.edge(start, end, _words_label(e.words))


def _inputs(graph: Graph) -> set[str]:
    return {v.name for v in graph.inputs}


def _words_label(text: str) -> str:
    return f"label=<{caption(' ' + style.shorten(text, 40), italic=True)}>" if text else ""


def _fusion_edge(picture: Scene, e: Edge, start: str, end: str) -> str:
    """Fused edges are solid ink; the others are dashed and say why, and how many bytes move."""
    if not picture.kernels and _same_kernel(picture.graph, e):
        return style.edge(start, end, color("ink"), "penwidth=1.1", _words_label(e.words))
    verdict = _verdict(picture, (e.start, e.value), e.end)
    # Behind the colon stand both iteration spaces: the text has them, a drawing has no room.
    reason = textwrap.wrap(verdict.reason.partition(":")[0], 30)[:3] if verdict else []
    size = caption(bytes_text(picture.types[e.value]))
    if picture.kernels:
        rows = [caption(row, "ink") for row in reason] or [""]
        label = _stacked([*rows[:-1], rows[-1] + "&#160; " + size])
        return style.edge(start, end, "style=dashed penwidth=1.1", color("ink"), label)
    rows = [words("kept apart", "apart", style.SMALL, bold=True)]
    rows += [caption(row, "apart") for row in reason]
    looks = ("style=dashed penwidth=1.8 arrowsize=0.7", color("apart"), _stacked(rows))
    return style.edge(start, end, *looks)


def _verdict(picture: Scene, starts: tuple[str, ...], end: str) -> Verdict | None:
    """The verdict about the edge to `end`; where that is a layout, about what reads it."""
    found = next((picture.apart[s, end] for s in starts if (s, end) in picture.apart), None)
    if found is not None or not any(u.name == end and u.is_layout for u in picture.units):
        return found
    users = (e.end for e in picture.edges if e.start == end and not e.back)
    return next(filter(None, (_verdict(picture, starts, user) for user in users)), None)


def _stacked(rows: list[str]) -> str:
    cells = "<BR/>".join(rows)
    return f'label=<<TABLE BORDER="0" CELLPADDING="4"><TR><TD>{cells}</TD></TR></TABLE>>'


def _same_kernel(graph: Graph, e: Edge) -> bool:
    groups = graph.group_of()
    a, b = groups.get(e.value), groups.get(e.end)
    return a is not None and a is b


def hold_sources(picture: Scene) -> list[str]:
    """Invisible edges that keep constants beside what they feed, instead of at the top."""
    order = {u.name: i for i, u in enumerate(picture.units)}
    fed = {e.end for e in picture.edges if not e.back}
    held = []
    for i, unit in enumerate(picture.units):
        if unit.name not in fed and i:
            before = _neighbour(picture, unit, order) or picture.units[i - 1].name
            ends = identifier("n", before), identifier("n", unit.name)
            held.append(f"{ends[0]} -> {ends[1]} [style=invis]")
    return held


def _neighbour(picture: Scene, unit: Unit, order: dict[str, int]) -> str | None:
    """What else its first user reads, if that stands before the unit."""
    user = next((e.end for e in picture.edges if e.start == unit.name), None)
    others = [e.start for e in picture.edges if e.end == user and e.start != unit.name]
    return next((o for o in others if order.get(o, -1) < order[unit.name]), None)


def bytes_text(t: TensorType) -> str:
    """``192 KB``: the size of a tensor, or its type while a dimension is a symbol."""
    if not all(isinstance(d, int) for d in t.shape):
        return str(t.pure())
    return size_text(t.bytes)


def size_text(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= size:
            value = count / size
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{count} B"
