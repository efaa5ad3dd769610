"""The fused graph: kernels in a valid order, each with its own copies of the free nodes it reads."""

from __future__ import annotations

import heapq
from dataclasses import replace

from minicompile.ir.graph import Graph, Group, Node, Value, map_node
from minicompile.passes.effects import pure
from minicompile.passes.fuse_kernel import Kernel
from minicompile.passes.fuse_sources import Sources


def assemble(graph: Graph, sources: Sources, kernels: list[Kernel]) -> Graph:
    """The graph with its nodes regrouped; kernels are k0, k1, ... in the order of running."""
    place = {n.outs[0].name: i for i, n in enumerate(graph.nodes) if n.outs}
    taken = {v.name for v in graph.arguments} | {v.name for n in graph.nodes for v in n.outs}
    nodes: list[Node] = []
    groups: list[Group] = []
    first: set[str] = set()  # free nodes whose own name is in use
    for kernel in in_order(kernels):
        if kernel.external:
            nodes += kernel.nodes
            continue
        group = f"k{len(groups)}"
        rename: dict[str, Value] = {}
        for name in sorted(kernel.free, key=place.__getitem__):
            old = sources.producers[name].out
            rename[name] = (
                old if name not in first else Value(fresh(f"{name}_{group}", taken), old.type)
            )
            first.add(name)
        members = sorted([*kernel.free, *kernel.names], key=place.__getitem__)
        own = [renamed(sources.producers[name], rename) for name in members]
        groups.append(Group(group, tuple(n.out.name for n in own)))
        nodes += own
    return replace(graph, nodes=tuple(nodes), groups=tuple(groups))


def fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def renamed(node: Node, rename: dict[str, Value]) -> Node:
    """The node with its operands and results renamed; the node itself if nothing is."""
    new = map_node(node, lambda v: rename.get(v.name, v))
    outs = tuple(rename.get(v.name, v) for v in node.outs)
    return new if outs == node.outs else replace(new, outs=outs)


def in_order(kernels: list[Kernel]) -> list[Kernel]:
    """A topological order; among those that are ready, the one whose last node came first."""
    owner = {name: k for k in kernels for n in k.nodes for name in (v.name for v in n.outs)}
    waits: dict[int, int] = {}
    after: dict[int, list[Kernel]] = {id(k): [] for k in kernels}
    last_effect: Kernel | None = None
    for k in kernels:
        before = {id(owner[r]): owner[r] for r in k.reads if r in owner and owner[r] is not k}
        if k.external and _has_effect(k):
            if last_effect is not None:
                before[id(last_effect)] = last_effect
            last_effect = k
        waits[id(k)] = len(before)
        for b in before.values():
            after[id(b)].append(k)
    ready = [(k.position, n) for n, k in enumerate(kernels) if not waits[id(k)]]
    number = {id(k): n for n, k in enumerate(kernels)}
    heapq.heapify(ready)
    order: list[Kernel] = []
    while ready:
        k = kernels[heapq.heappop(ready)[1]]
        order.append(k)
        for user in after[id(k)]:
            waits[id(user)] -= 1
            if not waits[id(user)]:
                heapq.heappush(ready, (user.position, number[id(user)]))
    assert len(order) == len(kernels), "kernels wait for each other in a circle"
    return order


def _has_effect(kernel: Kernel) -> bool:
    return not pure(kernel.nodes[0].op)
