"""A kernel while fusion makes it: what it iterates over, what it reads, and what it depends on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from minicompile.ir.graph import Node
from minicompile.ops.gather import parse_spec
from minicompile.ops.registry import PRIMITIVES, Kind, kind_of
from minicompile.passes.access import Shape, cut


@dataclass(eq=False)
class Kernel:
    """Nodes that will share a kernel.

    points   size of its iteration space; all values of that size are computed in one pass
    row      elements of one row, when it reduces rows (the last `row` points belong together); else 0
    anchor   the contraction, scan, scatter or reduction over other axes that has loops of its own
    bits     set of its nodes, as bits; `above`: all nodes that must be computed before
    """

    nodes: list[Node]
    position: int
    points: int
    row: int = 0
    anchor: Node | None = None
    shapes: set[Shape] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    free: set[str] = field(default_factory=set)
    cost: int = 0
    bits: int = 0
    above: int = 0
    external: bool = False

    @property
    def names(self) -> list[str]:
        return [n.outs[0].name for n in self.nodes]

    @property
    def anchor_kind(self) -> Kind | None:
        return None if self.anchor is None else kind_of(self.anchor.op)


def alone(node: Node, position: int, reads: Iterable[str], free: Iterable[str]) -> Kernel:
    """The kernel of just this node. An Extern is a kernel that nothing joins."""
    bits = 1 << position
    if node.is_extern:
        return Kernel([node], position, 0, reads=set(reads), bits=bits, external=True)
    points, row, anchor, shape = space_of(node)
    flops = PRIMITIVES[node.op].flops if kind_of(node.op) is Kind.ELEMENTWISE else 0
    return Kernel(
        [node], position, points, row, anchor, {shape}, set(reads), set(free), flops, bits
    )  # fmt: skip


def space_of(node: Node) -> tuple[int, int, Node | None, Shape]:
    """(points, row, anchor, shape) of the kernel of one node."""
    kind, out = kind_of(node.op), node.out.type.dims
    if kind is Kind.REDUCTION:
        space, dims = node.operands[0].type.dims, reduced_axes(node)
        trailing = dims == list(range(len(space) - len(dims), len(space)))
        row = math.prod([space[d] for d in dims])
        points: int = math.prod(space)
        if trailing and points and row > 1:
            return points, row, None, space
    anchored = kind in (Kind.REDUCTION, Kind.CONTRACTION, Kind.SCAN, Kind.SCATTER)
    return math.prod(out), 0, node if anchored else None, out


def reduced_axes(node: Node) -> list[int]:
    return sorted(node.ints("dims"))


def merged(producer: Kernel, consumer: Kernel, inlined: bool) -> Kernel:
    """One kernel of both; `inlined`: the producer is computed in the consumer's order, where it is read."""
    a, b = producer, consumer
    lead = b if inlined or b.row or b.anchor is not None else a
    shapes = {
        s
        for k in (a, b)
        for s in k.shapes
        if k is lead or (k.points == lead.points and not inlined)
    }
    bits = a.bits | b.bits
    return Kernel(
        sorted_nodes(a, b), max(a.position, b.position), lead.points, lead.row, a.anchor or b.anchor,
        shapes, a.reads | b.reads, a.free | b.free, a.cost + b.cost, bits, (a.above | b.above) & ~bits,
    )  # fmt: skip


def sorted_nodes(a: Kernel, b: Kernel) -> list[Node]:
    """In graph order: every node of a kernel is at the position of its bit."""

    def positions(k: Kernel) -> list[int]:
        bits = k.bits
        found = []
        while bits:
            low = bits & -bits
            found.append(low.bit_length() - 1)
            bits ^= low
        return found

    both = list(zip(positions(a), a.nodes)) + list(zip(positions(b), b.nodes))
    return [node for _, node in sorted(both, key=lambda pair: pair[0])]


def same_space(a: Kernel, b: Kernel) -> bool:
    """Do the values of a and b fit into the loops of one kernel?"""
    if a.row and b.row:
        return a.row == b.row and a.points == b.points
    if not a.row and not b.row:
        return a.points == b.points
    rows, other = (a, b) if a.row else (b, a)
    if other.anchor is not None:
        return False
    if other.points == rows.points:  # elementwise work on whole rows
        return all(cut(s, rows.row) is not None for s in other.shapes)
    return other.points * rows.row == rows.points  # one value per row


def describe(node: Node) -> str:
    """The iteration space in words: ``contract sums over k: 64 for each of (i: 32, j: 10)``."""
    kind, out = kind_of(node.op), node.outs[0].type.dims
    if kind is Kind.CONTRACTION:
        return _describe_contraction(node)
    if kind is Kind.REDUCTION:
        space = node.operands[0].type.dims
        sizes = " * ".join(str(space[d]) for d in reduced_axes(node))
        return f"{node.op} takes {sizes or 1} for each of {out}"
    if kind is Kind.SCAN:
        return f"{node.op} runs along axis {node.attr('dim')} of {out}"
    if kind is Kind.SCATTER:
        return f"{node.op} puts {node.operands[1].type.dims} into {out}"
    return f"{node.op} runs over {out}"


def products(node: Node) -> int:
    """How many products a contraction takes in all."""
    (a, b), _ = parse_spec(str(node.attr("spec")))
    sizes = dict(zip(a + b, node.operands[0].type.dims + node.operands[1].type.dims))
    return math.prod(sizes.values())


def _describe_contraction(node: Node) -> str:
    (a, b), out = parse_spec(str(node.attr("spec")))
    sizes = dict(zip(a + b, node.operands[0].type.dims + node.operands[1].type.dims))
    summed = ", ".join(f"{axis}: {n}" for axis, n in sizes.items() if axis not in out)
    kept = ", ".join(f"{axis}: {sizes[axis]}" for axis in out)
    return f"{node.op} sums over {summed or 'nothing'} for each of ({kept})"
