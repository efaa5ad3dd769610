"""A graph as DOT: boxes in clusters of modules, calls or kernels, and fusion verdicts on the edges."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

from minicompile.ir.graph import Graph, Verdict
from minicompile.ir.types import TensorType
from minicompile.view import style
from minicompile.view.folding import Run
from minicompile.view.scene import Edge, Scene, scene
from minicompile.view.style import PLAIN, Frame, caption, color, identifier, words
from minicompile.view.units import Unit, letters

Frames = dict[str, tuple[Frame, str]]  # unit name -> how its box is framed, and a last line


def dot_graph(graph: Graph, folded: bool = True, frames: Frames | None = None) -> str:
    """The DOT text of a graph at any level. `frames` mark boxes, for differences."""
    picture = scene(graph, letters(graph), folded)
    if len(picture.units) > 2 * 400:
        return style.notice(f"{len(graph.nodes)} operations: too many to draw")
    body = [_input(v.name, str(v.type)) for v in graph.inputs]
    body += _clustered(picture, frames or {})
    body += _outputs(picture)
    body += [_edge(picture, e) for e in picture.edges]
    body += _hold_sources(picture)
    if picture.closed:
        note = f"{len(graph.nodes)} operations; modules are closed to one box"
        return style.drawing(body, f"label=<{caption(note)}>")
    return style.drawing(body)


# ---------------------------------------------------------------------------------- boxes


def _input(name: str, type_: str) -> str:
    return style.node(identifier("n", name), style.port(name, type_, "B"), "io")


def _outputs(picture: Scene) -> list[str]:
    types = ", ".join(str(o.value.type.pure()) for o in picture.graph.outputs)
    ports = [style.node("n_return", style.port("return", style.shorten(types, 60), "T"), "io")]
    for name, value in picture.graph.writes:
        label = style.port(f"{name}[...]", str(value.type.pure()), "T")
        ports.append(style.node(identifier("n_write", name), label, "io"))
    return ports


def _unit(unit: Unit, frame: Frame, last: str) -> str:
    name = identifier("n", unit.name)
    if unit.is_layout:
        note = unit.notes[0].removeprefix("with ") if unit.notes and not unit.reads else ""
        text = f"{unit.title} {note or unit.plain}".strip()
        return style.node(name, style.plain_text(text, frame), "op kL")
    if unit.is_kernel:
        frame = style.KERNEL if frame is PLAIN else frame
        first = words(unit.title, size=style.LARGE, bold=True)
        first += words(f"  {unit.plain}" if unit.plain else "", "ink", 9)
    else:
        first = words(unit.title, bold=True) + caption(f" {unit.plain}" if unit.plain else "")
    notes = [caption(note, italic=True) for note in unit.notes[:3]]
    last_line = caption(last, frame.line) if last else ""
    text = style.lines(first, caption(unit.detail), *notes, last_line)
    return style.node(name, style.box(unit.letter, text, frame), f"op k{unit.letter}")


# ---------------------------------------------------------------------------------- clusters


@dataclass
class Cluster:
    """A rounded frame around neighbouring boxes: a module, a call, a kernel or a folded block."""

    path: str
    label: str
    run: Run | None = None
    kernel: bool = False
    members: list[Cluster | Unit] = field(default_factory=list)

    def units(self) -> int:
        return sum(m.units() if isinstance(m, Cluster) else 1 for m in self.members)


def _clustered(picture: Scene, frames: Frames) -> list[str]:
    """The boxes in their clusters. Neighbours with the same path share one."""
    steps = _kernel_path(picture) if _shows_kernels(picture) else _module_path(picture)
    root = Cluster("", "")
    stack = [root]
    for unit in picture.units:
        path = steps(unit)
        depth = 0
        while (
            depth < len(path)
            and depth + 1 < len(stack)
            and stack[depth + 1].path == path[depth].path
        ):
            depth += 1
        del stack[depth + 1 :]
        for cluster in path[depth:]:
            stack[-1].members.append(cluster)
            stack.append(cluster)
        stack[-1].members.append(unit)
    return _Writer(frames).members(root)


def _shows_kernels(picture: Scene) -> bool:
    return bool(picture.graph.groups) and not picture.kernels


def _kernel_path(picture: Scene) -> Callable[[Unit], list[Cluster]]:
    """Kernels as clusters around their operations."""
    groups = picture.graph.group_of()

    def path(unit: Unit) -> list[Cluster]:
        group = groups.get(unit.writes[0]) if unit.writes else None
        return [Cluster(group.name, group.name, kernel=True)] if group else []

    return path


def _module_path(picture: Scene) -> Callable[[Unit], list[Cluster]]:
    """At most three frames: the block, its sub-module, the call."""
    runs = {run.first: run for run in picture.runs}

    def path(unit: Unit) -> list[Cluster]:
        found: list[Cluster] = []
        parts = unit.module.split(".") if unit.module else []
        start = 0
        for end in range(1, len(parts) + 1):
            if len(found) < 2 and (end == len(parts) or not parts[end].isdigit()):
                full = ".".join(parts[:end])
                found.append(Cluster(full, ".".join(parts[start:end]), runs.get(full)))
                start = end
        if unit.call and unit.source and not unit.is_kernel:
            found.append(Cluster(f"{unit.module}/{unit.source}", unit.call))
        return found

    return path


class _Writer:
    """Writes clusters as DOT; a frame around one box is left out, one around a folded block never."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self.count = 0

    def members(self, cluster: Cluster) -> list[str]:
        out: list[str] = []
        for member in cluster.members:
            if isinstance(member, Unit):
                out.append(_unit(member, *self.frames.get(member.name, (PLAIN, ""))))
            elif member.run is None and member.units() == 1:
                out += self.members(member)
            else:
                out += self.cluster(member)
        return out

    def cluster(self, cluster: Cluster) -> list[str]:
        name = identifier("c", f"{cluster.path}_{self.count}")
        self.count += 1
        inner = ["  " + line for line in self.members(cluster)]
        label, look = _frame(cluster)
        text = [
            f'subgraph cluster_{name} {{ id="{name}" label=<{label}> labeljust=l {look}',
            *inner,
            "}",
        ]
        if cluster.run is None:
            return text
        outer = f'subgraph cluster_outer_{name} {{ style=rounded {color("edge")} margin=4 label=""'
        return [outer, *("  " + line for line in text), "}"]


def _frame(cluster: Cluster) -> tuple[str, str]:
    """The label and the looks of a cluster's frame."""
    panel = f'style="rounded,filled" fillcolor="{style.PALETTE["panel"]}"'
    if cluster.run is not None:
        run = cluster.run
        label = words(f"x{run.count}", "ink", 15, bold=True)
        label += words(f"   {run.first} ... {run.last}", "ink", style.NORMAL, bold=True)
        label += caption("   equal, drawn once")
        return label, f"{panel} {color('edge')} margin=8"
    if cluster.kernel:
        return words(
            cluster.label, "ink", style.LARGE, bold=True
        ), f"{panel} {color('ink')} penwidth=1.4 margin=8"
    call, gap, place = cluster.label.partition("  ")
    label = words(call, "muted", style.SMALL, bold=True) + caption(gap + place)
    return label, f"style=rounded {color('rule')} penwidth=1 margin=7"


# ---------------------------------------------------------------------------------- edges


def _edge(picture: Scene, e: Edge) -> str:
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
    """Fused edges are solid ink; the others are dashed and say why."""
    verdict = _verdict(picture, e)
    if not picture.kernels and _same_kernel(picture.graph, e):
        return style.edge(start, end, color("ink"), "penwidth=1.1", _words_label(e.words))
    reason = verdict.reason if verdict else ""
    if picture.kernels:
        label = caption(" " + style.shorten(reason, 30), "ink") if reason else ""
        label += caption("  " + bytes_text(picture.types[e.value]))
        return style.edge(start, end, "style=dashed penwidth=1.1", color("ink"), f"label=<{label}>")
    rows = [words("kept apart", "apart", style.SMALL, bold=True)]
    rows += [caption(row, "apart") for row in textwrap.wrap(reason, 30)[:3]]
    label = f'<TABLE BORDER="0" CELLPADDING="5"><TR><TD>{"<BR/>".join(rows)}</TD></TR></TABLE>'
    looks = ("style=dashed penwidth=1.8 arrowsize=0.7", color("apart"), f"label=<{label}>")
    return style.edge(start, end, *looks)


def _same_kernel(graph: Graph, e: Edge) -> bool:
    groups = graph.group_of()
    a, b = groups.get(e.value), groups.get(e.end)
    return a is not None and a is b


def _verdict(picture: Scene, e: Edge) -> Verdict | None:
    """The verdict about this edge, by the names of values or of their kernels."""
    ends = next((u.writes for u in picture.units if u.name == e.end), ())
    for v in picture.graph.verdicts:
        if v.producer in (e.start, e.value) and v.consumer in (e.end, *ends) and not v.fused:
            return v
    return None


def _hold_sources(picture: Scene) -> list[str]:
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
