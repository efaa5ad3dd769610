"""How one value reads another through layouts: the index, taken apart until it is affine.

`access((4, 6), steps)` names the loops over a space of 4 x 6 points and follows the layouts from the reader
back to the source.  A reshape gives quotients (``i // 3``); where the sizes divide, splitting the loop
(i = 3*i0 + i1) makes them affine again, as lowering does.  What is then left decides fusion:

    same      element p of the space reads element p: one pass does both
    row       every element of a row (the last `factor` points) reads the same element
    moved     each element is read once, in another order (permute, flip)
    part      some elements are read, none twice (slice)
    repeated  elements are read `factor` times (broadcast, window)
    choose    which one is read depends on the place (pad, concat)
    broken    no splitting of loops makes the index affine
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from minicompile.ir.graph import Node
from minicompile.ir.index import Index, Quotient, add, ix
from minicompile.ir.types import contiguous_strides
from minicompile.ops.registry import PRIMITIVES, Kind

Shape = tuple[int, ...]
Factors = tuple[tuple[int, ...], ...]  # of each axis: (2, 3) splits an axis of 6
MAX_SPLITS = 8


@dataclass(frozen=True)
class Step:
    """One node on the way from a reader to its source, and the operand that the way goes through."""

    node: Node
    operand: int


@dataclass(frozen=True)
class Access:
    """`index` of the source at the point `point` of the space. `broken`: the first step with a quotient."""

    point: tuple[Index, ...]
    index: tuple[Index, ...]
    conditional: bool = False
    broken: int | None = None


@dataclass(frozen=True)
class Relation:
    """See the head of this file. `factor`: how often each element is read, on average."""

    kind: str
    factor: float = 1.0


def is_free_of_index(step: Step) -> bool:
    """Does this step leave the row-major position of an element as it is?"""
    entry = PRIMITIVES[step.node.op]
    return entry.kind is Kind.ELEMENTWISE or entry.row_major


def relate(space: Shape, source: Shape, steps: tuple[Step, ...]) -> Relation:
    """How a reader with iteration space `space` reads a source of shape `source` through `steps`."""
    points, elements = math.prod(space), math.prod(source)
    if all(map(is_free_of_index, steps)):
        return Relation("same")
    if not points or not elements:
        return Relation("moved")
    factor = points / elements
    got = access(space, steps)
    if got.conditional:
        return Relation("choose", factor)
    if got.broken is not None:
        return Relation("broken", factor)
    if points == elements:
        same = flat(got.index, source) == flat(got.point, space)
        return Relation("same" if same else "moved")
    if points < elements:
        return Relation("part", factor)
    if points % elements == 0 and reads_rows(space, source, steps, points // elements):
        return Relation("row", factor)
    return Relation("repeated", factor)


def reads_rows(space: Shape, source: Shape, steps: tuple[Step, ...], row: int) -> bool:
    """Do the points p*row ... p*row + row-1 all read element p?"""
    factors = cut(space, row)
    if factors is None:
        return False
    got = access(space, steps, factors)
    rows = Index(tuple((v, c // row) for v, c in flat(got.point, space).terms if c >= row))
    return got.broken is None and flat(got.index, source) == rows


def cut(space: Shape, row: int) -> Factors | None:
    """The factors that let rows of `row` points end where an axis or one of its parts ends, or None."""
    inner = 1
    factors = [(n,) for n in space]
    for d in range(len(space) - 1, -1, -1):
        if row <= inner * space[d]:
            part = row // inner
            if part * inner != row or space[d] % part:
                return None
            if 1 < part < space[d]:
                return (*factors[:d], (space[d] // part, part), *factors[d + 1 :])
            return tuple(factors)
        inner *= space[d]
    return None


def flat(index: tuple[Index, ...], shape: Shape) -> Index:
    """The row-major position of an index, its terms in order of their names."""
    total = Index()
    for i, step in zip(index, contiguous_strides(shape)):
        total = add(total, i, step)
    return Index(tuple(sorted(total.terms, key=str)), total.const)


def access(space: Shape, steps: tuple[Step, ...], factors: Factors | None = None) -> Access:
    """The index at the end of `steps`; loops are split where that makes it affine."""
    factors = tuple((n,) for n in space) if factors is None else factors
    for _ in range(MAX_SPLITS):
        extents, point = name_loops(factors)
        got = follow(point, steps, extents)
        finer = split(got, factors, extents) if got.broken is not None else None
        if finer is None:
            break
        factors = finer
    return got


def name_loops(factors: Factors) -> tuple[dict[str, int], tuple[Index, ...]]:
    """Loop i{d}_{part} for each factor larger than 1, and the index that they form for each axis."""
    extents: dict[str, int] = {}
    point: list[Index] = []
    for d, parts in enumerate(factors):
        index = Index()
        for k, (n, step) in enumerate(zip(parts, contiguous_strides(parts))):
            if n != 1:
                extents[f"i{d}_{k}"] = n
                index = add(index, ix((f"i{d}_{k}", step)))
        point.append(index)
    return extents, tuple(point)


def follow(point: tuple[Index, ...], steps: tuple[Step, ...], extents: dict[str, int]) -> Access:
    index, conditional, broken = point, False, None
    for k, step in enumerate(steps):
        read_of = PRIMITIVES[step.node.op].read
        if read_of is None:  # elementwise
            continue
        types = [v.type for v in step.node.operands]
        read = read_of(types, dict(step.node.attrs), index, extents)
        arm = next(a for a in read.arms if a.operand == step.operand)
        index = arm.index
        conditional |= len(read.arms) > 1 or bool(arm.conds) or read.other is not None
        if broken is None and any(isinstance(t, Quotient) for i in index for t, _ in i.terms):
            broken = k
    return Access(point, index, conditional, broken)


def split(got: Access, factors: Factors, extents: dict[str, int]) -> Factors | None:
    """One more split, so that a quotient of `got` goes away; None if no loop divides evenly."""
    for q in (t for i in got.index for t, _ in i.terms if isinstance(t, Quotient)):
        for var, c in q.index.terms:
            if not isinstance(var, str) or c <= 0 or q.by % c:
                continue
            part, n = q.by // c, extents[var]
            if 1 < part < n and n % part == 0:
                d, k = (int(x) for x in var[1:].split("_"))
                parts = factors[d]
                finer = (*parts[:k], n // part, part, *parts[k + 1 :])
                return (*factors[:d], finer, *factors[d + 1 :])
    return None
