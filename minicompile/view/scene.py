"""What is drawn of a graph, and how it is wired, before a word of DOT is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from minicompile.ir.graph import Graph, Verdict
from minicompile.ir.types import TensorType
from minicompile.view.closing import close_calls, close_modules
from minicompile.view.folding import Folded, Run, fold
from minicompile.view.style import shorten
from minicompile.view.units import Letter, Unit, units_of

KERNELS_ABOVE = 40  # primitives: a fused graph with more is drawn as one box per kernel
WORDS_ABOVE = 60  # operations: with more, layouts become words on edges
CALLS_ABOVE = 120  # boxes: with more, the primitives of one call are closed to one box
CLOSED_ABOVE = 400  # boxes: with more, modules are closed to one box
_CLOSERS: tuple[tuple[str, int, Callable[[list[Unit]], list[Unit]]], ...] = (
    ("calls", CALLS_ABOVE, close_calls),
    ("modules", CLOSED_ABOVE, lambda units: close_modules(units, 2)),
    ("modules", CLOSED_ABOVE, lambda units: close_modules(units, 1)),
)


@dataclass(frozen=True)
class Edge:
    """From the unit or input that makes `value` to the unit `end` (or "return").

    `words` are the layouts in between; `back` says that it leads to the next of N equal blocks.
    """

    start: str
    end: str
    value: str
    words: str = ""
    back: bool = False


@dataclass(frozen=True)
class Scene:
    """Boxes in the order of the text, their edges, and the runs that were folded."""

    graph: Graph
    units: list[Unit]
    edges: list[Edge]
    runs: list[Run]
    kernels: bool
    closed: str  # what is drawn as one box: "calls", "modules" or ""
    types: dict[str, TensorType]
    apart: dict[tuple[str, str], Verdict]  # (producer, consumer) -> why they do not share a kernel


def scene(
    graph: Graph, letter: Letter, folded: bool = True, marks: Mapping[str, str] | None = None
) -> Scene:
    """Choose the boxes of a drawing, so that it stays legible, and wire them.

    Blocks whose boxes have different `marks` (unit name -> mark) are not equal.
    """
    kernels = bool(graph.groups) and len(graph.nodes) > KERNELS_ABOVE
    units = units_of(graph, letter, kernels)
    if marks:
        units = [replace(u, shape=(*u.shape, marks.get(u.name, ""))) for u in units]
    wordy = len(units) > WORDS_ABOVE and not marks
    chosen, words = _settle(units, folded, wordy)
    closed = ""
    for what, limit, further in _CLOSERS:
        if len(chosen.units) > limit and not marks:
            units, closed = further(units), what
            chosen, words = _settle(units, folded, wordy)
    types = {v.name: v.type for n in graph.nodes for v in n.outs}
    types |= {v.name: v.type for v in graph.arguments}
    edges = _edges(graph, units, chosen, words)
    apart = _apart(graph, kernels)
    return Scene(graph, chosen.units, edges, chosen.runs, kernels, closed, types, apart)


def _apart(graph: Graph, kernels: bool) -> dict[tuple[str, str], Verdict]:
    """The verdicts against fusion between boxes: the first for each pair."""
    groups = graph.group_of()

    def box(value: str) -> str:
        return groups[value].name if kernels and value in groups else value

    found: dict[tuple[str, str], Verdict] = {}
    for v in graph.verdicts:
        if not v.fused:
            found.setdefault((box(v.producer), box(v.consumer)), v)
    return found


@dataclass(frozen=True)
class Rearranged:
    """A layout that became a word: the value `base` ("" for a parameter, see `note`), in `words`."""

    base: str
    words: str
    note: str = ""


Words = dict[str, Rearranged]  # by the layout's value


def _settle(units: list[Unit], folded: bool, wordy: bool) -> tuple[Folded, Words]:
    """Fold equal blocks; `wordy`: layouts then become words on edges."""
    chosen = fold(units) if folded else Folded(units, [], {}, {})
    if not wordy:
        return chosen, {}
    words = _layout_words(units)
    boxes = [_noted(u, words) for u in chosen.units if not _is_word(u, words)]
    return replace(chosen, units=boxes), words


def _is_word(unit: Unit, words: Words) -> bool:
    return bool(unit.writes) and unit.writes[0] in words


def _layout_words(units: list[Unit]) -> Words:
    """Layouts of one operand, as the words on the edges that replace them; chains are joined."""
    words: Words = {}
    for unit in units:
        if not unit.is_layout or len(unit.reads) > 1:
            continue
        base = unit.reads[0] if unit.reads else ""
        inner = words.get(base, Rearranged(base, "", unit.notes[0] if unit.notes else ""))
        text = _join(inner.words, unit.title)
        words.update({w: Rearranged(inner.base, text, inner.note) for w in unit.writes})
    return words


def _join(*parts: str) -> str:
    """Layouts in words. A change of shape alone goes without saying where something else is said."""
    chain = [p for part in parts for p in part.split(", ") if p]
    telling = [p for p in chain if p not in ("view", "_unsafe_view", "reshape")]
    return shorten(", ".join(telling or chain[:1]), 28)


def _noted(unit: Unit, words: Words) -> Unit:
    """The unit reading through layouts; what they make of a parameter becomes a note."""
    seen = [words.get(r, Rearranged(r, "")) for r in unit.reads]
    notes = tuple(shorten(f"{s.note}, {s.words}", 52) for s in seen if not s.base)
    reads = tuple(dict.fromkeys(s.base for s in seen if s.base))
    return replace(unit, reads=reads, notes=unit.notes + notes)


def _edges(graph: Graph, units: list[Unit], chosen: Folded, words: Words) -> list[Edge]:
    makers = {w: u.name for u in chosen.units for w in u.writes}
    makers |= {v.name: v.name for v in graph.inputs}
    drawn = {u.name for u in chosen.units}
    found: dict[tuple[str, str, bool], Edge] = {}
    for unit in units:
        if not unit.writes or _is_word(unit, words):
            continue
        end = makers[chosen.stands_for.get(unit.writes[0], unit.writes[0])]
        for read in unit.reads:
            through = words.get(read, Rearranged(read, ""))
            base, text = through.base, through.words
            start = makers.get(chosen.stands_for.get(base, base))
            if start is None or (start == end and unit.name in drawn):
                continue
            back = _crosses(chosen, base, unit.writes[0])
            found.setdefault((start, end, back), Edge(start, end, base, text, back))
    for edge in _returned(graph, chosen, words, makers):
        found.setdefault((edge.start, edge.end, False), edge)
    return list(found.values())


def _crosses(chosen: Folded, start: str, end: str) -> bool:
    """Does this edge lead from one block of a run to another?"""
    a, b = chosen.block.get(start), chosen.block.get(end)
    return a is not None and b is not None and a[0] == b[0] and a[1] != b[1]


def around(graph: Graph, centre: set[str], hops: int = 1) -> Graph:
    """The part of a graph within `hops` edges of the nodes that define the values in `centre`."""
    makers, users = graph.producers(), graph.users()
    near = {n.outs[-1].name: n for n in graph.nodes if n.outs and n.outs[-1].name in centre}
    for _ in range(hops):
        found = [makers[v.name] for n in near.values() for v in n.operands if v.name in makers]
        found += [u for n in near.values() for v in n.outs for u in users[v.name] if u.outs]
        near |= {n.outs[-1].name: n for n in found}
    nodes = tuple(n for n in graph.nodes if n.outs and n.outs[-1].name in near)
    read = {v.name for n in nodes for v in n.operands}
    made = {v.name for n in nodes for v in n.outs}
    return replace(
        graph,
        inputs=tuple(v for v in graph.inputs if v.name in read),
        nodes=nodes,
        outputs=tuple(o for o in graph.outputs if o.value.name in made),
        writes=tuple((name, v) for name, v in graph.writes if v.name in made),
    )


def _returned(graph: Graph, chosen: Folded, words: Words, makers: dict[str, str]) -> Iterator[Edge]:
    ends = [("return", o.value.name) for o in graph.outputs]
    ends += [(f"write_{name}", value.name) for name, value in graph.writes]
    for end, name in ends:
        through = words.get(name, Rearranged(name, ""))
        start = makers.get(chosen.stands_for.get(through.base, through.base))
        if start is not None:
            yield Edge(start, end, through.base, through.words)
