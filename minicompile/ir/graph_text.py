"""Graph -> text; the grammar is in ir.graph, and a comment behind a line names the user's lines.

After fuse, a verdict stands as a comment above its consumer: ``# t3 -> t4 kept apart: reason``.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from minicompile.ir.graph import Arg, Graph, Group, Node, Output, TorchConst, Value, Verdict
from minicompile.ir.text_lines import Lines, comment
from minicompile.ir.types import DType, TensorType


def graph_text(graph: Graph) -> str:
    """The text of a graph, without a line feed at the end."""
    lines = Lines()
    add_signature(lines, graph)
    group_of, verdicts = graph.group_of(), _by_consumer(graph)
    for name, nodes in groupby(graph.nodes, lambda n: _group_name(n, group_of)):
        if name:
            lines.add(1, f"with {name}:")
        for node in nodes:
            add_node(lines, node, 2 if name else 1, verdicts)
    for verdict in (v for left in verdicts.values() for v in left):
        lines.add(1, f"# {verdict_text(verdict)}")
    add_end(lines, graph)
    return lines.text()


def add_signature(lines: Lines, graph: Graph) -> None:
    params = [f"{v.name}: {v.type}" for v in graph.inputs]
    if graph.params:
        params += ["*", *(f"{v.name}: {v.type}" for v in graph.params)]
    types = [str(output_type(o)) for o in graph.outputs]
    result = types[0] if len(types) == 1 else f"({', '.join(types)})"
    lines.add_list(0, f"def {graph.name}(", params, f") -> {result}:")


def add_end(lines: Lines, graph: Graph) -> None:
    """The write-backs and the return."""
    for name, value in graph.writes:
        lines.add(1, f"{name}[...] = {value.name}")
    outputs = [output_text(o) for o in graph.outputs]
    if len(outputs) > 1:
        one = f"return {', '.join(outputs)}"
        if len(one) <= 96:
            lines.add(1, one)
        else:
            lines.add_list(1, "return (", outputs, ")")
    else:
        lines.add(1, f"return {outputs[0] if outputs else '()'}")


def add_node(
    lines: Lines, node: Node, depth: int, verdicts: dict[str, list[Verdict]] | None = None
) -> None:
    for out in node.outs:
        for verdict in (verdicts or {}).pop(out.name, ()):
            lines.add(depth, f"# {verdict_text(verdict)}")
    lines.add(depth, node_text(node), comment(node.origins, node.why))


def node_text(node: Node) -> str:
    """``t2: f32[4] = add(t0, t1)``, without its comment."""
    declared = [f"{v.name}: {v.type}" for v in node.outs]
    if len(declared) == 1:
        return f"{declared[0]} = {call_text(node)}"
    names = ", ".join(v.name for v in node.outs)
    return "; ".join([*declared, f"{names} = {call_text(node)}" if names else call_text(node)])


def call_text(node: Node) -> str:
    args = [arg_text(a) for a in node.args]
    for key, value in node.attrs:
        plain = key.isidentifier() and not keyword.iskeyword(key)
        args.append(f"{key}={arg_text(value)}" if plain else f"**{{{key!r}: {arg_text(value)}}}")
    return f"{_op_text(node.op)}({', '.join(args)})"


def _op_text(op: str) -> str:
    """``aten.add.Tensor``; an overload that is a Python keyword is quoted: ``op('aten.random.from')``."""
    parts = op.split(".")
    plain = all(p.isidentifier() and not keyword.iskeyword(p) for p in parts)
    return op if plain else f"op({op!r})"


def arg_text(arg: Arg) -> str:
    """A value, a literal, or a tuple of such."""
    if isinstance(arg, Value):
        return arg.name
    if isinstance(arg, tuple):
        return _tuple_text([arg_text(a) for a in arg])
    if isinstance(arg, bool) or arg is None:
        return str(arg)
    if isinstance(arg, float):
        return float_text(arg)
    if isinstance(arg, complex):
        return f"complex({float_text(arg.real)}, {float_text(arg.imag)})"
    if isinstance(arg, (DType, TorchConst)):
        return str(arg)
    return repr(arg)


def float_text(x: float) -> str:
    """A Python float literal, or inf, -inf, nan."""
    return repr(x) if math.isfinite(x) else str(x)


def _tuple_text(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def output_text(out: Output) -> str:
    if out.view is not None:
        shape, strides, offset = out.view
        return f"view({out.value.name}, {arg_text(shape)}, {arg_text(strides)}, {offset})"
    if out.strides is not None:
        return f"strided({out.value.name}, {arg_text(out.strides)})"
    return out.value.name


def output_type(out: Output) -> TensorType:
    """What the caller gets, without its memory layout."""
    type = out.value.type.pure()
    return type if out.view is None else type.with_shape(out.view[0])


def verdict_text(v: Verdict) -> str:
    reason = " ".join(v.reason.split())
    return f"{v.producer} -> {v.consumer} {'fused' if v.fused else 'kept apart'}: {reason}"


def _by_consumer(graph: Graph) -> dict[str, list[Verdict]]:
    verdicts: dict[str, list[Verdict]] = {}
    for v in graph.verdicts:
        verdicts.setdefault(v.consumer, []).append(v)
    return verdicts


def _group_name(node: Node, group_of: dict[str, Group]) -> str:
    groups: Iterable[str] = (group_of[v.name].name for v in node.outs if v.name in group_of)
    return next(iter(groups), "")
