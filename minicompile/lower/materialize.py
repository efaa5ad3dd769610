"""Which values of a kernel get memory and a loop nest of their own; all others are computed where read.

A nest is made for
  - each result of the kernel (it is read elsewhere),
  - each reduction, contraction, scan and scatter (it has loops of its own),
  - arithmetic that would otherwise be repeated: read by two nests and not cheap, read through a
    broadcast or a window (once per copy), or below a contraction (once per element of the other operand),
  - a computed index below a conditional read (a pad), since the load it guards must not run outside.
Memory costs little here: `merge` turns most of these buffers into a scalar or one row.
"""

from __future__ import annotations

from collections.abc import Iterable

from minicompile.ir.graph import Node
from minicompile.ops.registry import PRIMITIVES, Kind

CHEAP = 8  # additions: recomputing this much costs no more than a store and a load in L1
OWN_LOOPS = (Kind.REDUCTION, Kind.CONTRACTION, Kind.SCAN, Kind.SCATTER)


def materialized(nodes: Iterable[Node], results: set[str]) -> list[str]:
    """Names of the values that get a nest, in order. `nodes` are one kernel's, `results` its results."""
    order = list(nodes)
    inside = {n.out.name: n for n in order}
    cost = inline_costs(order)
    chosen = {n.out.name for n in order if n.out.name in results or _kind(n) in OWN_LOOPS}
    readers: dict[str, set[str]] = {name: set() for name in inside}  # the nests that compute it
    repeated: set[str] = set()  # read through a broadcast, a window or a contraction
    guarded: set[str] = set()  # read under a condition
    for node in reversed(order):
        name = node.out.name
        if _must_have_memory(
            node, cost[name], len(readers[name]), name in repeated, name in guarded
        ):
            chosen.add(name)
        own = name in chosen
        for v in node.operands:
            if v.name in inside:
                readers[v.name] |= {name} if own else readers[name]
                if repeats(node) or (name in repeated and not own):
                    repeated.add(v.name)
                if conditional(node) or (name in guarded and not own):
                    guarded.add(v.name)
    return [n.out.name for n in order if n.out.name in chosen]


def _must_have_memory(node: Node, cost: int, nests: int, repeated: bool, guarded: bool) -> bool:
    kind = _kind(node)
    if kind is Kind.GATHER and guarded:
        return True
    if kind is not Kind.ELEMENTWISE:
        return False
    return (nests > 1 and cost >= CHEAP) or (repeated and cost > 1)


def inline_costs(nodes: Iterable[Node]) -> dict[str, int]:
    """Additions needed for one element of each value, when all its inputs are computed in place."""
    cost: dict[str, int] = {}
    for node in nodes:
        below = sum(cost.get(v.name, 0) for v in node.operands)
        own = PRIMITIVES[node.op].flops if _kind(node) is Kind.ELEMENTWISE else 0
        cost[node.out.name] = 0 if _kind(node) in OWN_LOOPS else own + below
    return cost


def repeats(node: Node) -> bool:
    """Does this node read an element of its operand more than once?"""
    if _kind(node) is Kind.CONTRACTION:
        return True
    if _kind(node) is not Kind.LAYOUT:
        return False
    return node.out.type.numel > sum(v.type.numel for v in node.operands) and not conditional(node)


def conditional(node: Node) -> bool:
    """Does this layout read only where a condition holds (pad, concat)?"""
    if _kind(node) is not Kind.LAYOUT:
        return False
    read = PRIMITIVES[node.op].read
    assert read is not None, f"layout {node.op} has no `read`"
    from minicompile.ir.index import ix

    names = [f"i{d}" for d in range(node.out.type.ndim)]
    extents = dict(zip(names, node.out.type.dims))
    types = [v.type for v in node.operands]
    got = read(types, dict(node.attrs), tuple(ix(n) for n in names), extents)
    return any(arm.conds for arm in got.arms) or got.other is not None


def _kind(node: Node) -> Kind:
    return PRIMITIVES[node.op].kind
