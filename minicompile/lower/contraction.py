"""Contractions as tile sees them: which loop each operand varies with, and what a tile would cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from minicompile.ir.loop import Accumulate, Alloc, Bind, Expr, For, If, Kernel, Load, Store
from minicompile.ir.walk import walk
from minicompile.lower.analysis import (
    Body,
    carried,
    ceil_div,
    chain,
    depends,
    find,
    flops,
    loops_of,
    straight,
    stride,
    strides_of,
)
from minicompile.lower.machine import LANES, machine

FOLD = 8.0  # cycles: the 16 lanes of one register added up
STRIDED = 20.0  # cycles: a vector whose elements are far apart in memory
COPY = 2.0  # cycles: one element copied, transposing
MAX_ROWS = 8  # with two vectors: 16 sums hide the latency; more rows only lengthen the text
MAX_COLUMNS = 8  # memory streams that a core's prefetchers follow
LATENCY = 4  # cycles from one multiply-add to the next on the same register


@dataclass(frozen=True)
class Contraction:
    """A nest ``outer loops: acc = 0; reduction loops: acc += f(loads); epilogue`` with two or more loads.

    `loads` are those of the reduction's innermost body; `scalars` the accumulators.
    """

    outer: tuple[For, ...]
    reduction: tuple[For, ...]
    loads: tuple[Load, ...]
    scalars: int
    inner_flops: int  # of one innermost iteration
    epilogue_flops: int  # of one element of the result
    stores: tuple[Store, ...]
    steps: Mapping[tuple[int, str], int | None]  # (id of a load or store, variable) -> stride
    registers: int  # how many vectors of its dtype the machine holds

    @property
    def depth(self) -> int:
        """Innermost iterations for one element of the result."""
        return math.prod(x.extent for x in self.reduction)

    def step(self, load: Load | Store, var: str) -> int | None:
        """How far apart in memory neighbours along the loop `var` are; None if not evenly spaced."""
        return self.steps[id(load), var] if var else 0

    def varying(self, var: str) -> list[Load]:
        return [x for x in self.loads if self.step(x, var) != 0]

    def extent(self, var: str) -> int:
        return next((x.extent for x in (*self.outer, *self.reduction) if x.var == var), 1)


def recognize(k: Kernel, root: str) -> Contraction | None:
    """The nest at `root` as a contraction; None if it is something else."""
    outer, body = chain(find(k, root))
    nests = [s for s in body if isinstance(s, For)]
    if len(nests) != 1 or {x.kind for x in loops_of((find(k, root),))} != {"serial"}:
        return None
    reduction, inner = chain(nests[0])
    if not all(isinstance(s, (Bind, Accumulate)) for s in inner):
        return None
    names = {x.var for x in reduction} | {s.name for s in inner if isinstance(s, Bind)}
    found = dict.fromkeys(n for n in walk(inner) if isinstance(n, Load))
    loads = tuple(x for x in found if depends(x, names))
    if len(loads) < 2 or not all(isinstance(s, (Alloc, Bind, Store, For)) for s in body):
        return None
    after = body[body.index(nests[0]) + 1 :]
    stores = tuple(s for s in after if isinstance(s, Store))
    scalars = sum(isinstance(s, Accumulate) for s in inner)
    strides = strides_of(k)
    places: tuple[Load | Store, ...] = (*loads, *stores)
    steps = {
        (id(x), y.var): stride(x.index, strides[x.buf], y.var)
        for x in places
        for y in (*outer, *reduction)
    }
    registers = machine().registers * 4 // max(4, *(x.dtype.bytes for x in loads))
    return Contraction(
        outer, reduction, loads, scalars, _cost(inner), _cost(after), stores, steps, registers
    )


def _cost(stmts: Body) -> int:
    return sum(flops(s) for s in stmts)


def whole(loop: For, buf: str, moving: str = "") -> Expr:
    """How the nest reads `buf` (along the loop `moving`): the load, or the condition around it."""
    reads = [n for n in walk(loop) if isinstance(n, Load) and n.buf == buf]
    load = next(n for n in reads if not moving or depends(n, {moving}))
    around = [
        n for n in walk(loop) if isinstance(n, If) and any(m is load or m == load for m in walk(n))
    ]
    return around[0] if around else load


# ---------------------------------------------------------------------------------- choices


@dataclass(frozen=True)
class Choice:
    """A schedule for one contraction, with its estimated cost in cycles.

    rows: 16 lanes along `vector`, a register tile of mr (`row`) x nv vectors; loads in `pack` are copied
    into a contiguous panel first.  dot: 16 lanes along the reduction loop `vector`, a tile of mr (`row`)
    x nv (`column`) sums.
    """

    how: str
    vector: str
    row: str
    mr: int
    nv: int
    cycles: float
    column: str = ""
    pack: tuple[Load, ...] = ()

    @property
    def price(self) -> float:
        """Cycles, and a little for long texts: among equals, the smaller tile compiles faster.

        (8x2 rows take 0.35 s, 2x8 dots 0.9 s: every dot ends in a fold and a scalar epilogue.)
        """
        return self.cycles * (1 + (0.01 if self.how == "dot" else 0.004) * self.mr * self.nv)

    def __str__(self) -> str:
        if self.how == "dot":
            rows = f"{self.mr} of {self.row} x " if self.row else ""
            return f"{rows}{self.nv} of {self.column}, lanes along {self.vector}"
        packed = "".join(f", {x.buf} packed" for x in self.pack)
        rows = f"{self.mr} of {self.row} x " if self.row else ""
        return f"{rows}{LANES * self.nv} of {self.vector}{packed}"


def choices(c: Contraction) -> list[Choice]:
    """Every schedule that fits the registers, the cheapest first."""
    return sorted([*row_choices(c), *dot_choices(c)], key=lambda x: x.price)


def row_choices(c: Contraction) -> Iterator[Choice]:
    """Lanes along an axis of the result."""
    free = [x.var for x in c.outer if not carried(x)]
    for v in (x.var for x in c.outer if x.var in free and straight(x)):
        moving = c.varying(v)
        if not moving:
            continue
        for u in ["", *(y for y in free if y != v)]:
            for nv in range(1, 5):
                room = c.registers - 1 - nv * len(moving)
                most = min(room // (nv * c.scalars), c.extent(u), MAX_ROWS)
                if most >= 1 and (nv == 1 or LANES * nv <= c.extent(v)):
                    yield _row_choice(c, v, u, balanced(c.extent(u), most), nv)


def balanced(extent: int, most: int) -> int:
    """The smallest tile that needs no more tiles than `most` does: 64 by 14 gives 13 (5 tiles)."""
    return ceil_div(extent, ceil_div(extent, most))


def _row_choice(c: Contraction, v: str, u: str, mr: int, nv: int) -> Choice:
    rows, vectors = c.extent(u), ceil_div(c.extent(v), LANES)
    rest = math.prod(x.extent for x in c.outer if x.var not in (u, v))
    tiles = ceil_div(rows, mr) * ceil_div(vectors, nv) * rest
    far = [x for x in c.varying(v) if c.step(x, v) != 1]
    pack = tuple(x for x in far if x not in c.varying(u))
    reads = 0.0
    for x in c.loads:
        times = (mr if x in c.varying(u) else 1) * (nv if x in c.varying(v) else 1)
        reads += times * _read(c, x, u, v, x in pack)
    adds = mr * nv * max(1.0, c.inner_flops / 2)
    step = max(adds, reads, LATENCY) + 1 + reads / 50
    store = sum(1.0 if c.step(s, v) == 1 else STRIDED for s in c.stores)
    finish = mr * nv * (store + 1 + c.epilogue_flops) + 20
    panels = sum(_panel(c, x) for x in pack) * COPY
    return Choice("rows", v, u, mr, nv, tiles * (c.depth * step + finish) + panels, pack=pack)


def _read(c: Contraction, x: Load, u: str, v: str, packed: bool) -> float:
    """Cycles of one load: a vector, or one number for all lanes (cheaper if its rows are neighbours)."""
    if c.step(x, v) == 0:
        return 0.4 if u and c.step(x, u) == 1 else 0.5
    return 1.0 if packed or c.step(x, v) == 1 else STRIDED


def _panel(c: Contraction, load: Load) -> float:
    """Elements of one operand, over all loops that it varies with."""
    return float(math.prod(x.extent for x in (*c.outer, *c.reduction) if load in c.varying(x.var)))


def dot_choices(c: Contraction) -> Iterator[Choice]:
    """Lanes along a reduction axis: every operand has unit stride there (or does not vary)."""
    names = ["", *(y.var for y in c.outer if not carried(y))]
    for x in c.reduction:
        steps = [c.step(load, x.var) for load in c.loads]
        if not straight(x) or not all(s in (0, 1) for s in steps) or 1 not in steps:
            continue
        for u in names:
            for w in names:
                if w == u or (u and not w):
                    continue
                for mr in {balanced(c.extent(u), most) for most in (1, 2, 3, 4, 6, 8)}:
                    room = c.registers - 2 - mr
                    most = min(room // (mr * c.scalars), c.extent(w), MAX_COLUMNS)
                    if most >= 1:
                        yield _dot_choice(c, x.var, u, w, mr, balanced(c.extent(w), most))


def _dot_choice(c: Contraction, v: str, u: str, w: str, mr: int, nr: int) -> Choice:
    rest = math.prod(x.extent for x in c.outer if x.var not in (u, w))
    tiles = ceil_div(c.extent(u), mr) * ceil_div(c.extent(w), nr) * rest
    reads = 0.0
    for x in c.loads:
        reads += (mr if x in c.varying(u) else 1) * (nr if x in c.varying(w) else 1)
    adds = mr * nr * max(1.0, c.inner_flops / 2)
    step = max(adds, reads, LATENCY) + 1
    depth = ceil_div(c.extent(v), LANES) * (c.depth // c.extent(v))
    finish = mr * nr * (FOLD * c.scalars + 1 + 4 * c.epilogue_flops + len(c.stores)) + 20
    return Choice("dot", v, u, mr, nr, tiles * (depth * step + finish), column=w)
