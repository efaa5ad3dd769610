"""decompose: from ATen ops to primitives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from minicompile.errors import CompileError, NotNative
from minicompile.ir.graph import Graph, Node, Value, map_node, substitute
from minicompile.ir.location import lines, unite
from minicompile.ops.build import Builder, unwrap, wrap
from minicompile.ops.registry import COMPOSITES, PRIMITIVES
from minicompile.passes.base import Pass, register
from minicompile.passes.changes import Changes, current

EXTERN = "extern: "  # how `why` of a node that stays an ATen op begins


@register
@dataclass(frozen=True)
class Decompose(Pass):
    """Each ATen op with an entry in the registry becomes the primitives of its body.

    The parts of t2 are t2_0, t2_1, ...; the last keeps the name t2 (each result of an op with several
    keeps its own). All parts have the origin of the op. Ops without an entry, and calls that an entry does
    not cover, stay: Externs, with the reason in `why`.

    before:  t0: f32[4, 8] = aten.add.Tensor(x, b)           # m.py:4
    after:   t0_0: f32[4, 8] = broadcast(b, shape=(4, 8), dims=(1,))  # m.py:4
             t0: f32[4, 8] = add(x, t0_0)                             # m.py:4
    """

    name = "decompose"
    verb = "expanded"
    requires = ("functional", "ungrouped")
    ensures = ("primitive",)

    def run(self, graph: Graph) -> Graph:
        changes = current()
        taken = {v.name for v in graph.arguments} | {v.name for n in graph.nodes for v in n.outs}
        users = graph.users()
        read = {name for name, nodes in users.items() if nodes} | {v.name for v in graph.results}
        done: dict[str, Node] = {}
        env: dict[str, Value] = {}
        for n, node in enumerate(graph.nodes):
            changes.focus = node
            node = map_node(node, lambda v: env.get(v.name, v))
            parts, same = expand(node, taken.__contains__, read, changes)
            for part in parts:
                done[part.outs[0].name if part.outs else f"effect {n}"] = part
            for name, value in same.items():  # this result is a value that was there before
                env[name] = value
                if value.name in done:
                    old = done[value.name]
                    done[value.name] = replace(old, origins=unite(old.origins, node.origins))
        return substitute(graph, env, done.values())

    def summary(self, before: Graph, after: Graph, changes: Changes) -> str:
        """``decompose expanded 12 of 14 nodes; 2 stay Extern: aten.sort, aten.topk``."""
        if not changes.fired:
            sentence = "decompose changed nothing"
        else:
            sentence = f"decompose expanded {len(changes.subjects)} of {len(before.nodes)} nodes"
        ops = [n.op for n in after.nodes if n.is_extern]
        if ops:
            names = ", ".join(list(dict.fromkeys(ops))[:4])
            sentence += f"; {len(ops)} stay{'s' * (len(ops) == 1)} Extern: {names}"
        return sentence


def expand(
    node: Node, taken: Callable[[str], bool], read: set[str], changes: Changes
) -> tuple[list[Node], dict[str, Value]]:
    """The nodes that replace `node`, and those of its results that are other values: name -> value.

    Results that are not in `read` are dropped, whatever the body gives for them.
    """
    if node.op in PRIMITIVES:
        return [node], {}
    entry = COMPOSITES.get(node.op)
    if entry is None:
        return [extern(node, "no entry in the registry")], {}
    if any(v.type.dtype.kind == "c" for v in (*node.operands, *node.outs)):
        return [extern(node, "complex numbers are left to PyTorch")], {}
    if beyond_range(node):
        return [extern(node, "a number is beyond the range of the dtype")], {}
    builder = Builder(node.outs[0].name, taken)
    try:
        results = run_body(node, entry.body, builder)
    except NotNative as e:
        return [extern(node, str(e))], {}
    if not changes.fire(entry.name, node):
        return [extern(node, "the limit of rewrites is reached")], {}
    parts, same = named(node, builder.nodes, results, read)
    return [replace(p, origins=node.origins, why=node.why) for p in parts], same


def extern(node: Node, reason: str) -> Node:
    return node if node.why.startswith(EXTERN) else replace(node, why=EXTERN + reason)


def beyond_range(node: Node) -> bool:
    """Is a Python number too large for a float dtype here? Some ops of PyTorch raise then, some take inf."""
    dtypes = {v.type.dtype for v in (*node.operands, *node.outs)}
    largest = min((torch.finfo(d.torch).max for d in dtypes if d.kind == "f"), default=math.inf)
    numbers = tree_leaves((node.args, tuple(v for _, v in node.attrs)))
    return any(isinstance(n, float) and largest < abs(n) < math.inf for n in numbers)


def run_body(node: Node, body: Callable[..., Any], builder: Builder) -> tuple[Value, ...]:
    """The results of a composite's body. CompileError if it does not accept the node's arguments."""
    attrs = {k: wrap(v) for k, v in node.attrs}
    try:
        with builder:
            result = body(*wrap(node.args), **attrs)
    except (TypeError, ValueError) as e:
        raise error(node, str(e)) from e
    values = result if isinstance(result, (tuple, list)) else (result,)
    return tuple(unwrap(v) for v in values)


def named(
    node: Node, parts: list[Node], results: tuple[Value, ...], read: set[str]
) -> tuple[list[Node], dict[str, Value]]:
    """The parts, renamed so that the results have the node's own names."""
    if len(results) != len(node.outs):
        raise error(node, f"{len(results)} results, but PyTorch gives {len(node.outs)}")
    made = {p.outs[0].name for p in parts}
    rename: dict[str, Value] = {}
    same: dict[str, Value] = {}
    for want, got in zip(node.outs, results):
        if want.name not in read:
            continue
        check_type(node, want, got)
        if got.name in made and got.name not in rename:
            rename[got.name] = Value(want.name, got.type)
        else:
            same[want.name] = rename.get(got.name, got)

    def new(v: Value) -> Value:
        return rename.get(v.name, v)

    renamed = [replace(map_node(p, new), outs=tuple(map(new, p.outs))) for p in parts]
    return renamed, same


def check_type(node: Node, want: Value, got: Value) -> None:
    """The type that capture saw must be the type that the registry infers."""
    if got.type.pure() != want.type.pure():
        raise error(node, f"it gives {got.type} for {want.name}, but PyTorch gave {want.type}")


def error(node: Node, message: str) -> CompileError:
    return CompileError(
        "MC030",
        f"decomposition of {node.op} failed: {message}",
        where=lines(node.origins),
        remedy=f"The registry's entry for {node.op} is wrong here; please report it.",
    )
