"""What a pass changed: one sentence, and a drawing with removed, added and changed boxes.

Nodes of two graphs are the same when they define the same value; kernels when they have the same name.
A pass that makes more than 60 % of its output anew (decompose, lower) changed everything: then the
drawing says so, instead of showing two graphs at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from minicompile.ir.graph import Graph, Node
from minicompile.ir.graph_text import call_text
from minicompile.ir.location import lines
from minicompile.ir.loop import Kernel, Program
from minicompile.ir.loop_text import kernel_text
from minicompile.view import style
from minicompile.view.dot_graph import Frames, dot_graph
from minicompile.view.dot_loop import dot_program
from minicompile.view.scene import around

MOST_NEW = 0.6  # of the nodes
WHOLE = 60  # nodes: of larger graphs only what changed is drawn, with its neighbours


@dataclass(frozen=True)
class Diff:
    """`removed`, `added` and `changed` name values or kernels; `sentence` has counts and user lines."""

    sentence: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    before: Any
    after: Any

    def __str__(self) -> str:
        return self.sentence

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.changed)

    @property
    def dot(self) -> str:
        """The drawing as DOT text."""
        if isinstance(self.before, Graph) and isinstance(self.after, Graph):
            return _dot_graphs(self)
        if isinstance(self.before, Program) and isinstance(self.after, Program):
            return dot_program(self.after, marked={*self.added, *self.changed})
        return style.notice(self.sentence)


def diff(before: Any, after: Any, name: str = "") -> Diff:
    """Compare two IRs. `name` is the pass that made `after`; `before` may be None for the first stage."""
    head = f"{name}: " if name else ""
    if isinstance(before, Graph) and isinstance(after, Graph):
        return _graphs(before, after, head)
    if isinstance(before, Program) and isinstance(after, Program):
        return _programs(before, after, head)
    if before is after:
        return Diff(f"{head}nothing changed", (), (), (), before, after)
    sentence = (
        f"{head}{_size(after)}"
        if before is None
        else f"{head}{_size(before)} became {_size(after)}"
    )
    return Diff(sentence, (), (), (), before, after)


def _size(ir: Any) -> str:
    if isinstance(ir, Graph):
        return f"{len(ir.nodes)} nodes"
    if isinstance(ir, Program):
        return f"{len(ir.kernels)} kernels"
    return "one kernel" if isinstance(ir, Kernel) else "source text"


# ---------------------------------------------------------------------------------- graphs


def _graphs(before: Graph, after: Graph, head: str) -> Diff:
    old, new = _by_value(before), _by_value(after)
    removed = tuple(n for n in old if n not in new)
    added = tuple(n for n in new if n not in old)
    changed = tuple(n for n in new if n in old and _meaning(old[n]) != _meaning(new[n]))
    touched = [old[n] for n in (*removed, *changed)] + [new[n] for n in added]
    grouped = "" if before.groups == after.groups else f"{len(after.groups)} kernels"
    sentence = head + _sentence(len(old), len(removed), len(added), len(changed), touched, grouped)
    return Diff(sentence, removed, added, changed, before, after)


def _by_value(graph: Graph) -> dict[str, Node]:
    """Nodes by the last value they define, the name that their box has, too."""
    return {n.outs[-1].name: n for n in graph.nodes if n.outs}


def _meaning(node: Node) -> tuple[str, tuple[str, ...]]:
    return call_text(node), tuple(str(v.type) for v in node.outs)


def _sentence(
    total: int, removed: int, added: int, changed: int, touched: Sequence[Node], grouped: str
) -> str:
    parts = [
        f"{n} {word}"
        for n, word in ((removed, "removed"), (added, "added"), (changed, "changed"))
        if n
    ]
    parts += [grouped] if grouped else []
    if not parts:
        return f"nothing changed in {total} nodes"
    places = lines(o for n in touched for o in n.origins).split(", ")
    where = ", ".join(places[:6]) + (", ..." if len(places) > 6 else "")
    said = f"{', '.join(parts)}, of {total} nodes"
    return f"{said}: {where}" if where else said


def _dot_graphs(d: Diff) -> str:
    """The union of both graphs, as `after` with what was removed put back in its place."""
    if len(d.added) + len(d.changed) > MOST_NEW * len(d.after.nodes) > 12:
        return style.notice(d.sentence)
    old = _by_value(d.before)
    frames: Frames = {n: (style.REMOVED, "") for n in d.removed}
    frames |= {n: (style.ADDED, "") for n in d.added}
    frames |= {n: (style.CHANGED, style.shorten(f"was {call_text(old[n])}", 44)) for n in d.changed}
    graph = _union(d)
    if len(graph.nodes) <= WHOLE or not frames:
        return dot_graph(graph, frames=frames)
    part = around(replace(graph, groups=()), set(frames))
    hidden = len(graph.nodes) - len(part.nodes)
    return dot_graph(part, frames=frames, note=f"{hidden} unchanged nodes are not drawn")


def _union(d: Diff) -> Graph:
    """`after`, and in it the removed nodes, each behind what stood before it."""
    graph: Graph = d.after
    new = _by_value(graph)
    behind: dict[str, list[Node]] = {}
    anchor = ""
    for name, node in _by_value(d.before).items():
        if name in new:
            anchor = name
        else:
            behind.setdefault(anchor, []).append(node)
    nodes = list(behind.get("", ()))
    for name, node in new.items():
        nodes += [node, *behind.get(name, ())]
    return replace(graph, nodes=tuple(nodes), groups=() if d.removed else graph.groups)


# ---------------------------------------------------------------------------------- programs


def _programs(before: Program, after: Program, head: str) -> Diff:
    old = {k.name: kernel_text(k) for k in before.kernels}
    new = {k.name: kernel_text(k) for k in after.kernels}
    removed = tuple(n for n in old if n not in new)
    added = tuple(n for n in new if n not in old)
    changed = tuple(n for n in new if n in old and old[n] != new[n])
    counts = ((len(removed), "removed"), (len(added), "added"), (len(changed), "changed"))
    parts = [f"{n} {word}" for n, word in counts if n]
    if before.arena_bytes != after.arena_bytes:
        parts.append(f"arena of {after.arena_bytes:,} bytes")
    said = f"{', '.join(parts)}, of {len(old)} kernels" if parts else "nothing changed"
    names = ", ".join((*removed, *added, *changed)[:6])
    return Diff(
        f"{head}{said}{': ' + names if names else ''}", removed, added, changed, before, after
    )
