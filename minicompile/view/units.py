"""What a drawing of a graph shows as one box: an operation, a kernel, or a closed module.

A `Unit` holds text and wiring, no layout; `folding` merges equal ones, `dot_graph` writes them down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from minicompile.ir.graph import Arg, Graph, Group, Node, Value
from minicompile.ir.optable import OPS
from minicompile.ir.types import TensorType
from minicompile.view.style import shorten

Letter = Callable[[str], str]  # op name -> the letter of its kind, see style.KIND_WORDS

RANK = "MTGSRXfECL"  # the kind of a group is its heaviest: matrix products first, layouts last

# ATen calls that only rearrange: drawn as words, like our own layouts.
_REARRANGING = (
    "_unsafe_view alias as_strided broadcast_to chunk detach diagonal expand expand_as flatten narrow "
    "permute reshape select slice split split_with_sizes squeeze t transpose unbind unflatten unfold "
    "unsqueeze view view_as"
)
ATEN_LAYOUTS = frozenset(_REARRANGING.split())


@dataclass(frozen=True)
class Unit:
    """One box.

    `name` is a value's or a kernel's, `title` and `detail` its two lines, `notes` further ones.
    `reads` and `writes` are value names. `module` is the path of the nn.Module, `call` what the user
    wrote (``gelu  m.py:7``) and `source` the ATen value it makes. `shape` is what two equal units have in common, besides their wiring.
    """

    name: str
    letter: str
    title: str
    plain: str
    detail: str
    notes: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    module: str = ""
    source: str = ""
    call: str = ""
    shape: tuple[str, ...] = ()
    is_kernel: bool = False

    @property
    def is_layout(self) -> bool:
        return self.letter == "L" and not self.is_kernel


def letters(graph: Graph) -> Letter:
    """The letters of a graph's ops: kinds from the op table; what PyTorch runs is X, or f while all is."""
    primitive_level = any(n.op in OPS for n in graph.nodes)

    def letter(op: str) -> str:
        if op in OPS:
            return str(OPS[op].kind.value)
        return "X" if primitive_level else "f"

    return letter


def op_title(op: str) -> str:
    """``aten.add.Tensor`` -> ``add``; primitives as they are; other namespaces keep theirs."""
    parts = op.split(".")
    if parts[0] == "aten" and len(parts) > 1:
        return parts[1]
    return ".".join(parts[1:3]) if parts[0] == "torch_ops" else op


def arg_text(arg: Arg) -> str:
    """A literal argument as text; values and None give nothing, since edges show values."""
    if isinstance(arg, Value) or arg is None:
        return ""
    if isinstance(arg, tuple):
        if any(isinstance(a, Value) for a in arg):
            return ""
        return (
            "("
            + ", ".join(arg_text(a) or "None" for a in arg)
            + ("," if len(arg) == 1 else "")
            + ")"
        )
    if isinstance(arg, float) and math.isfinite(arg):
        return f"{arg:.7g}" if arg != int(arg) or abs(arg) > 1e6 else repr(arg)
    return arg if isinstance(arg, str) else str(arg)


def plain_attributes(node: Node) -> str:
    """The constants and attributes that fit on the first line: ``0.015625``, ``dims=(1,)``."""
    parts = [t for t in map(arg_text, node.args) if t]
    for name, value in node.attrs:
        text = arg_text(value)
        if text:
            parts.append(text if name == "spec" else f"{name}={text}")
    return shorten(", ".join(parts), 34)


def type_text(t: TensorType) -> str:
    return str(t.pure())


def node_unit(node: Node, params: dict[str, Value], letter: Letter) -> Unit:
    """The unit of one operation. Parameters live in their user, as a note."""
    title = op_title(node.op)
    reads = tuple(dict.fromkeys(v.name for v in node.operands if v.name not in params))
    used = tuple(dict.fromkeys(v for v in node.operands if v.name in params))
    kind = "L" if node.op.startswith("aten.") and title in ATEN_LAYOUTS else letter(node.op)
    detail = ", ".join(f"{v.name}: {type_text(v.type)}" for v in node.outs[:1])
    if len(node.outs) > 1:
        detail += f"  (and {len(node.outs) - 1} more)"
    plain = plain_attributes(node)
    return Unit(
        name=node_name(node),
        letter=kind,
        title=title,
        plain=plain,
        detail=detail,
        notes=tuple(f"with {shorten(v.name, 32)}: {type_text(v.type)}" for v in used),
        reads=reads,
        writes=tuple(v.name for v in node.outs),
        module=common_module([node]),
        source=node.origins[0].value if len(node.origins) == 1 else "",
        call=call_text(node),
        shape=(
            node.op,
            repr([arg_text(a) for a in node.args]),
            repr([(k, arg_text(a)) for k, a in node.attrs]),
            *(type_text(v.type) for v in node.outs),
            *(type_text(v.type) for v in used),
        ),
    )


def group_unit(
    group: Group, nodes: list[Node], outs: list[Value], params: dict[str, Value], letter: Letter
) -> Unit:
    """The unit of a kernel: what it does, the calls joined by +, and the type of its results `outs`."""
    inside = {v.name for n in nodes for v in n.outs}
    parts = [node_unit(n, params, letter) for n in nodes]
    heaviest = min(parts, key=lambda u: RANK.find(u.letter))
    reads = dict.fromkeys(r for u in parts for r in u.reads if r not in inside)
    body = " + ".join(dict.fromkeys(u.title for u in parts if u.letter not in "LC"))
    return Unit(
        name=group.name,
        letter=heaviest.letter,
        title=group.name,
        plain=shorten(heaviest.module or common_calls(nodes), 36),
        detail=f"{shorten(body or parts[-1].title, 44)}: {type_text(outs[-1].type)}",
        notes=(),
        reads=tuple(reads),
        writes=tuple(v.name for v in outs),
        module=heaviest.module,
        shape=tuple(part for u in parts for part in u.shape),
        is_kernel=True,
    )


def units_of(graph: Graph, letter: Letter, kernels: bool) -> list[Unit]:
    """The boxes of a graph in the order of its text; with `kernels`, one for each group."""
    params = {v.name: v for v in graph.params}
    groups = graph.group_of() if kernels else {}
    members: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if node.outs and node.outs[0].name in groups:
            members.setdefault(groups[node.outs[0].name].name, []).append(node)
    leaving = _leaving(graph, groups)
    units: dict[str, Unit] = {}
    for node in graph.nodes:
        group = groups.get(node.outs[0].name) if node.outs else None
        if group is None:
            units[f"node {node_name(node)}"] = node_unit(node, params, letter)
        elif f"kernel {group.name}" not in units:
            nodes = members[group.name]
            outs = leaving.get(group.name) or [nodes[-1].outs[-1]]
            units[f"kernel {group.name}"] = group_unit(group, nodes, outs, params, letter)
    return list(units.values())


def _leaving(graph: Graph, groups: dict[str, Group]) -> dict[str, list[Value]]:
    """Kernel name -> the values that leave it: read by another kernel, or results of the graph."""
    users, results = graph.users(), {v.name for v in graph.results}
    found: dict[str, list[Value]] = {}
    for node in graph.nodes:
        for v in node.outs:
            group = groups.get(node.outs[0].name)
            readers = {groups.get(u.outs[0].name) for u in users[v.name] if u.outs}
            if group is not None and (v.name in results or readers - {group}):
                found.setdefault(group.name, []).append(v)
    return found


def node_name(node: Node) -> str:
    """The last value a node defines; the op where it defines none."""
    return node.outs[-1].name if node.outs else op_title(node.op)


def common_module(nodes: Iterable[Node]) -> str:
    """The longest module path that all origins of the nodes share."""
    paths = [o.loc.module.split(".") for n in nodes for o in n.origins if o.loc.module]
    if not paths:
        return ""
    shared: list[str] = []
    for parts in zip(*paths):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)


def call_text(node: Node) -> str:
    """``gelu  m.py:7``: what the user wrote, if the node has one place of origin."""
    places = {(o.loc.call, str(o.loc)) for o in node.origins}
    if len(places) != 1:
        return ""
    ((call, place),) = places
    return f"{call or op_title(node.op)}  {place}"


def common_calls(nodes: Iterable[Node]) -> str:
    calls = dict.fromkeys(o.loc.call for n in nodes for o in n.origins if o.loc.call)
    return " + ".join(calls)
