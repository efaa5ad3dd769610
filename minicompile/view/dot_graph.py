"""A graph as DOT: boxes in clusters of modules, calls or kernels, and fusion verdicts on the edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from minicompile.ir.graph import Graph
from minicompile.view import style
from minicompile.view.dot_edges import dot_edge, hold_sources
from minicompile.view.folding import Run
from minicompile.view.scene import CLOSED_ABOVE, Scene, scene
from minicompile.view.style import PLAIN, Frame, caption, color, identifier, words
from minicompile.view.units import Unit, letters

Frames = dict[str, tuple[Frame, str]]  # unit name -> how its box is framed, and a last line


def dot_graph(
    graph: Graph, folded: bool = True, frames: Frames | None = None, note: str = ""
) -> str:
    """The DOT text of a graph at any level. `frames` mark boxes, for differences; `note` stands below."""
    marks = {name: frame.mark + last for name, (frame, last) in (frames or {}).items()}
    picture = scene(graph, letters(graph), folded, marks)
    if len(picture.units) > CLOSED_ABOVE:
        return style.notice(f"{len(graph.nodes)} operations: too many to draw")
    body = [_input(v.name, str(v.type)) for v in graph.inputs]
    body += _clustered(picture, frames or {})
    body += _outputs(picture)
    body += [dot_edge(picture, e) for e in picture.edges]
    body += hold_sources(picture)
    if picture.closed:
        note = f"{len(graph.nodes)} operations; {picture.closed} are closed to one box"
    return style.drawing(body, f"label=<{caption(note)}>" if note else "")


# ---------------------------------------------------------------------------------- boxes


def _input(name: str, type_: str) -> str:
    return style.node(identifier("n", name), style.port(name, type_, "B"), "io")


def _outputs(picture: Scene) -> list[str]:
    types = ", ".join(str(o.value.type.pure()) for o in picture.graph.outputs)
    ports = []
    if types:
        ports.append(
            style.node("n_return", style.port("return", style.shorten(types, 60), "T"), "io")
        )
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
