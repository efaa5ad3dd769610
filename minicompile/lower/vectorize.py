"""vectorize: which loop of each nest becomes 16 lanes, and how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from minicompile.errors import CompileError
from minicompile.ir.loop import Accumulate, For, Kernel, Program
from minicompile.ir.walk import walk
from minicompile.lower.analysis import (
    Access,
    Body,
    Strides,
    accesses,
    allocated,
    carried,
    ceil_div,
    chain,
    find,
    flops,
    loops_of,
    straight,
    stride,
    strides_of,
    volume,
)
from minicompile.lower.kernels import each_kernel
from minicompile.lower.lanes import crossing, map_axis, reduce_axis
from minicompile.lower.layouts import collapse
from minicompile.lower.machine import LANES
from minicompile.lower.motion import commutes
from minicompile.lower.transforms import distinct, drop_unit
from minicompile.passes.base import Pass, register

FOLD = 12  # additions: combining the 16 lanes of one register
STRIDED = 28  # additions: a vector load or store whose lanes are not neighbours
NEAR = 0.7  # of that, where `transpose` brings the lanes near each other first


@register
@dataclass(frozen=True)
class Vectorize(Pass):
    """Every nest runs 16 elements at a time, along the axis where that costs least.

    before:  for i in serial(100):
                 y[i] = exp(x[i])
    after:   for io in serial(7, step=16, last=84):
                 for iv in vector(16):
                     y[io + iv] = exp(x[io + iv])

    An axis qualifies if its iterations are independent (a *map*), or if they only add up to scalars (a
    *reduction*: then each lane has its own sum, and 4 registers hide the latency of an addition). The
    cost of an axis counts vector operations: 1 for lanes that are neighbours in memory, 28 if they are
    far apart.  A nest whose axes all cost more than one element at a time stays serial.
    """

    name = "vectorize"
    level = "loop"
    verb = "vectorised"

    def run(self, program: Program) -> Program:
        return each_kernel(program, lambda k: (vectorize(k), "16 lanes"))


def vectorize(k: Kernel) -> Kernel:
    """One kernel; nests that have vector loops already (see tile) stay as they are."""
    k = distinct(k)
    done: set[str] = set()
    while todo := [root for root in roots(k.body) if root not in done]:
        done |= set(todo)
        for root in todo:
            k = vectorize_nest(k, root)
    return drop_unit(k)


def vectorize_nest(k: Kernel, root: str) -> Kernel:
    """The nest at `root` by its cheapest legal plan."""
    k = collapse_short(k, root)
    for plan in sorted(plans(k, root), key=lambda p: p.cost):
        try:
            return apply(k, plan)
        except CompileError:  # a transform's legality check: the next best plan, then
            continue
    return k


def collapse_short(k: Kernel, root: str) -> Kernel:
    """Join loops whose inner one would leave many lanes idle: 26 x 26 is 43 vectors, not 26 x 2.

    Only loops directly inside each other that walk through memory as one (see `collapse`).
    """
    for outer in reversed([x.var for x in loops_of((find(k, root),))]):
        loops, body = chain(find(k, outer))
        if len(loops) < 2 or any(isinstance(s, For) for s in body):
            continue
        inner = loops[1].extent
        if ceil_div(inner, LANES) * LANES > 1.05 * inner:
            try:
                k = collapse(k, outer, loops[1].var)
            except CompileError:  # they do not walk through memory as one
                continue
    return k


def roots(stmts: Body) -> Iterator[str]:
    """The outermost loops that no schedule has touched yet."""
    for s in stmts:
        if isinstance(s, For):
            kinds = {x.kind for x in loops_of((s,))}
            if kinds == {"serial"}:
                yield s.var
            else:
                yield from roots(s.body)


# ---------------------------------------------------------------------------------- plans


@dataclass(frozen=True)
class Plan:
    """What to do with the nest at `root`: `how` is map, reduce, inner or serial; `axis` a loop."""

    root: str
    how: str
    axis: str
    cost: float
    inner: tuple[Plan, ...] = ()


def plans(k: Kernel, root: str) -> list[Plan]:
    """Every way to run the nest at root, with its cost in vector operations."""
    strides = strides_of(k)
    loops, body = chain(find(k, root))
    found = [Plan(root, "serial", "", cost((loops[0],), "", strides))]
    leaf = not any(isinstance(s, For) for s in body)
    for x in loops:
        if not straight(x):
            continue
        total = cost((loops[0],), x.var, strides)
        if not carried(x):
            near = NEAR if crossing(k, root, x.var) else 1.0
            found.append(Plan(root, "map", x.var, total * near))
        elif leaf and only_sums(x):
            found.append(Plan(root, "reduce", x.var, total + FOLD * len(scalar_sums(x))))
    if not leaf:
        best = tuple(min(plans(k, s.var), key=lambda p: p.cost) for s in body if isinstance(s, For))
        plain = tuple(s for s in body if not isinstance(s, For))
        total = volume(loops) * (cost(plain, "", strides) + sum(p.cost for p in best))
        found.append(Plan(root, "inner", "", total, best))
    return found


def scalar_sums(loop: For) -> set[str]:
    """The scalars from outside that the loop accumulates into."""
    inside = allocated(loop.body)
    sums = (s for s in walk(loop.body) if isinstance(s, Accumulate) and not s.index)
    return {s.buf for s in sums if s.buf not in inside}


def only_sums(loop: For) -> bool:
    """Are sums into scalars, which nothing in the loop reads, all that ties its iterations together?"""
    uses = list(accesses(loop.body))
    scalars = scalar_sums(loop)
    pure = all(a.mode == "a" for a in uses if a.buf in scalars)
    return pure and not commutes(loop) and not _memory_sums(loop, scalars)


def _memory_sums(loop: For, scalars: set[str]) -> bool:
    others = (s for s in walk(loop.body) if isinstance(s, Accumulate) and s.buf not in scalars)
    return any(s.buf not in allocated(loop.body) for s in others)


def cost(stmts: Body, axis: str, strides: Strides) -> float:
    """Operations these statements take with 16 lanes along `axis` ("": one element at a time)."""
    total = 0.0
    for s in stmts:
        if isinstance(s, For):
            trips = ceil_div(s.extent, LANES) if s.var == axis else s.extent
            total += trips * cost(s.body, axis, strides)
        else:
            total += flops(s) + sum(_move(a, strides[a.buf], axis) for a in accesses(s))
    return total


def _move(a: Access, strides: tuple[int, ...], axis: str) -> float:
    """A load or store: neighbours 1, one value for all lanes 1/2, lanes far apart 28 (stores: 29).

    A load of every other element is two of neighbours and a shuffle.  Scalars cost nothing.
    """
    if not a.index:
        return 0
    step = stride(a.index, strides, axis) if axis else 1
    if step == 2 and a.mode == "r":
        return 3
    return 0.5 if step == 0 else 1 if step == 1 else STRIDED + (a.mode != "r")


# ---------------------------------------------------------------------------------- applying


def apply(k: Kernel, plan: Plan) -> Kernel:
    if plan.how == "inner":
        for p in plan.inner:
            k = apply(k, p)
        return k
    if plan.how == "map":
        return map_axis(k, plan.root, plan.axis)
    if plan.how == "reduce":
        return reduce_axis(k, plan.root, plan.axis)
    return k
