"""The two register-tile schedules of contractions: lanes along the result, or along the sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from minicompile.ir.loop import Alloc, For, Kernel, Load, Store, ix, rewrite, walk
from minicompile.ir.types import TensorType
from minicompile.lower.analysis import Body, chain, find, stride, strides_of
from minicompile.lower.contraction import Choice, Contraction
from minicompile.lower.machine import LANES
from minicompile.lower.registers import registers
from minicompile.lower.transforms import (
    at,
    fresh,
    mark,
    need,
    nest,
    pad_vector,
    rename,
    reorder,
    shift,
    split,
    stage,
)
from minicompile.lower.vectorize import reduce_axis

HEAVY = 10  # additions: from here on an epilogue is a loop of its own over the finished tile


def tile_rows(k: Kernel, c: Contraction, x: Choice) -> Kernel:
    """Lanes along an axis of the result: the GEMM microkernel.

        for jo in serial(16):                        a panel of 16*nv columns
            w_panel: f32[512, 2, 16] @ local         packed, where columns are far apart
            for io in serial(37, step=14, last=498): a block of mr rows
                acc: f32[14, 2, 16] @ register
                ... = 0.0
                for k in serial(512):
                    for ir in unroll(14): for ju in unroll(2): for jv in vector(16):
                        acc[ir, ju, jv] += x[io + ir, k] * w_panel[k, ju, jv]
                ... epilogue

    Every panel is read by all row blocks while it is in the cache.
    """
    others = [y.var for y in c.outer if y.var not in (x.vector, x.row)]
    needed = [y for y in others if any(load in c.varying(y) for load in x.pack)]
    free = [y for y in others if y not in needed]
    k = reorder(k, [*needed, x.vector, *free, *([x.row] if x.row else [])])
    k, panel, lanes = _split_lanes(k, x.vector, x.nv)
    k, block, rows = _split_rows(k, x.row, x.mr)
    k = reorder(k, [*needed, panel, *free, *block, *rows, *lanes])
    k = registers(k, [*rows, *lanes])
    k = _roll_epilogue(k, c, [*rows, *lanes])
    for var in (*rows, *lanes[:-1]):
        k = mark(k, var, "unroll")
    k = pad_vector(k, lanes[-1])
    return _pack(k, c, x, panel, lanes)


def _split_lanes(k: Kernel, var: str, nv: int) -> tuple[Kernel, str, list[str]]:
    """Panels of nv vectors of 16 lanes: (panel loop, [vector loop] or [unrolled, vector])."""
    o, b, u, v = (fresh(k, var + letter) for letter in "obuv")
    loop = find(k, var)
    if loop.extent < LANES:
        return at(k, var, lambda inner: (For(o, 1, "serial", (inner,)),)), o, [var]
    if nv == 1:
        return shift(k, var, LANES, o, v), o, [v]
    return split(shift(k, var, LANES * nv, o, b), b, LANES, u, v), o, [u, v]


def _split_rows(k: Kernel, var: str, mr: int) -> tuple[Kernel, list[str], list[str]]:
    """Blocks of mr rows: ([block loop], [row loop])."""
    if not var or mr == 1:
        return k, [var] if var else [], []
    o, r = fresh(k, var + "o"), fresh(k, var + "r")
    return shift(k, var, mr, o, r), [o], [r]


def _pack(k: Kernel, c: Contraction, x: Choice, panel: str, lanes: list[str]) -> Kernel:
    """Copy each operand of `x.pack` into a panel that lies in memory as the tile reads it."""
    reduction = [y.var for y in c.reduction]
    for buf in dict.fromkeys(load.buf for load in x.pack):
        strides = strides_of(k)
        far = (
            n
            for n in walk(find(k, panel))
            if isinstance(n, Load) and n.buf == buf
            and stride(n.index, strides[buf], lanes[-1]) not in (0, 1)
        )  # fmt: skip
        load = next(far)
        k = stage(k, load, panel, [*reduction, *lanes], fresh(k, f"{buf}_panel"))
    return k


def _roll_epilogue(k: Kernel, c: Contraction, tile: list[str]) -> Kernel:
    """A heavy epilogue runs as a rolled loop over a copy of the tile in L1, not unrolled in registers.

    Costs one store and one load for each vector, and saves mr*nv copies of its text.
    """
    if c.epilogue_flops < HEAVY:
        return k
    copies = [s for s in _parents(k, tile[0])]
    need(bool(copies), k, "the tile has no epilogue")
    body = copies[-1]
    last = body[-1]
    assert isinstance(last, For)
    loops, epilogue = chain(last)
    loops, epilogue = loops[: len(tile)], loops[len(tile) - 1].body
    index = tuple(ix(v) for v in tile)
    tiles = [n for n in walk(epilogue) if isinstance(n, Load) and n.index == index]
    spill: Body = ()
    rolled = epilogue
    for load in dict.fromkeys(tiles):
        raw = fresh(k, f"{load.buf}_tile")
        shape = tuple(y.extent for y in loops)
        spill += (Alloc(raw, TensorType(load.dtype, shape), "local"),)
        spill += nest(loops, (Store(raw, index, load),))
        rolled = rewrite(rolled, _reads(load, raw))
    new = {v: fresh(k, f"{v}e") for v in tile}
    after = rename(nest(loops, rolled), new)

    def swap(stmts: Body) -> Body:
        if stmts == body:
            return (*stmts[:-1], *spill, *after)
        return tuple(replace(s, body=swap(s.body)) if isinstance(s, For) else s for s in stmts)

    return replace(k, body=swap(k.body))


def _reads(load: Load, buf: str) -> Any:
    return lambda n: replace(load, buf=buf) if n == load else n


def _parents(k: Kernel, var: str) -> list[Body]:
    """Bodies that directly hold a loop `var`, in order."""
    found: list[Body] = []

    def go(stmts: Body) -> None:
        loops = [s for s in stmts if isinstance(s, For)]
        if any(s.var == var for s in loops):
            found.append(stmts)
        for s in loops:
            go(s.body)

    go(k.body)
    return sorted(found, key=len)


def tile_dot(k: Kernel, c: Contraction, x: Choice) -> Kernel:
    """Lanes along the sum: for few rows (a GEMV), where every weight is used once and packing loses.

        for jo in serial(64):
            acc_part: f32[8, 16] @ register          eight rows of w at once, one vector each
            for ko in serial(49): for jr in unroll(8): for kv in vector(16):
                acc_part[jr, kv] += x[ko*16 + kv] * w[jo*8 + jr, ko*16 + kv]
            for jr in unroll(8): acc[jr] += fold_add(acc_part[jr, :]); epilogue

    Both operands are read as they lie in memory, each weight once: this runs at memory bandwidth.
    """
    pair = [y for y in (x.row, x.column) if y]
    others = [y.var for y in c.outer if y.var not in pair]
    k = reorder(k, [*others, *pair])
    k, rows_o, rows = _split_rows(k, x.row, x.mr)
    k, columns_o, columns = _split_rows(k, x.column, x.nv)
    k = reorder(k, [*others, *rows_o, *columns_o, *rows, *columns])
    k = reduce_axis(k, c.reduction[0].var, x.vector, ways=1 if rows or columns else 4)
    if rows or columns:
        k = registers(k, [*rows, *columns])
    for var in (*rows, *columns):
        k = mark(k, var, "unroll")
    return k
