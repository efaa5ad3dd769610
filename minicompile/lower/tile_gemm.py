"""The two register-tile schedules of contractions: lanes along the result, or along the sum."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from minicompile.errors import CompileError
from minicompile.ir.index import ix
from minicompile.ir.loop import Accumulate, Alloc, For, If, Kernel, Load, Stmt, Store
from minicompile.ir.types import TensorType
from minicompile.ir.walk import rewrite, walk
from minicompile.lower.analysis import (
    Body,
    accesses,
    chain,
    depends,
    enclosing,
    find,
    flops,
    loops_of,
    written,
)
from minicompile.lower.contraction import Choice, Contraction, whole
from minicompile.lower.lanes import reduce_axis
from minicompile.lower.layouts import stage, stage_invariants, stage_window
from minicompile.lower.machine import LANES
from minicompile.lower.motion import reorder
from minicompile.lower.registers import registers
from minicompile.lower.transforms import at, fresh, nest, pad_vector, rename, shift, split

HEAVY = 10  # additions: from here on an epilogue is a loop of its own over the finished tile


def tile_rows(k: Kernel, c: Contraction, x: Choice) -> Kernel:
    """Lanes along an axis of the result: the GEMM microkernel.

        for jo in serial(16):                        a panel of 16*nv columns
            w_panel: f32[512, 2, 16] @ local         packed, where columns are far apart
            for io in serial(64):                    a block of mr rows
                acc: f32[8, 2, 16] @ register
                ... = 0.0
                for k in serial(512):
                    for ir in unroll(8): for ju in unroll(2): for jv in vector(16):
                        acc[ir, ju, jv] += x[io * 8 + ir, k] * w_panel[k, ju, jv]
                ... epilogue

    Every panel is read by all row blocks while it is in the cache.
    """
    root = c.outer[0].var
    parent = enclosing(k, root)
    others = [y.var for y in c.outer if y.var not in (x.vector, x.row)]
    needed = [y for y in others if not x.pack or any(load in c.varying(y) for load in x.pack)]
    free = [y for y in others if y not in needed]
    k = reorder(k, [*needed, x.vector, *free, *([x.row] if x.row else [])])
    k, panel, lanes = _split_lanes(k, x.vector, x.nv)
    k, block, rows = _split_rows(k, x.row, x.mr)
    k = reorder(k, [*needed, panel, *free, *block, *rows, *lanes])
    k = registers(pad_vector(k, lanes[-1]), [*rows, *lanes])
    k = stage_invariants(k, panel, lanes, least=2)
    k = _roll_epilogue(k, [*rows, *lanes])
    k = _pack(k, c, x, panel, lanes)
    k = _stage_padded(k, parent, [*needed, panel, *free])
    return unmask(k)


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
    """Copy each operand of `x.pack` into a panel that lies in memory as the tile reads it.

    The copy takes 16 columns at a time: 16 cache lines stay in L1 until every word of them is used,
    which 32 lines at a distance of a power of two would not (measured: 2.4 against 0.9 G elements/s).
    """
    reduction = [y.var for y in c.reduction]
    order = [*lanes[:-1], *reduction, lanes[-1]]
    for buf in dict.fromkeys(load.buf for load in x.pack):
        e = whole(find(k, panel), buf, lanes[-1])
        k = stage(k, e, panel, [*reduction, *lanes], fresh(k, f"{buf}_panel"), order)
    return k


def unmask(k: Kernel) -> Kernel:
    """A short vector that stays within private memory of 16 lanes needs no mask.

    Law: the lanes beyond hold anything, and nobody stores them where they can be seen.
    """
    allocs = (s for s in walk(k.body) if isinstance(s, Alloc))
    roomy = {s.buf for s in allocs if s.type.shape and s.type.shape[-1] == LANES}

    def one(n: Any) -> Any:
        if isinstance(n, For) and n.kind == "vector" and n.active is not None:
            moving = [a for a in accesses(n.body) if depends(a.index, {n.var})]
            along = all(a.index[-1] == ix(n.var) for a in moving)
            if along and written(n.body) | {a.buf for a in moving} <= roomy:
                return replace(n, active=None)
        return n

    return replace(k, body=rewrite(k.body, one))


def _stage_padded(k: Kernel, parent: str, order: list[str]) -> Kernel:
    """Operands read under conditions (padding) are copied, with their margins, as far outside as they
    do not get larger: inside loops that pick one slice of them, or that they do not depend on."""
    padded = [n for n in walk(find(k, order[0])) if isinstance(n, If) and _one_load(n)]
    for e in dict.fromkeys(padded):
        outside = parent
        for var in order:
            slices = any(i == ix(var) for n in walk(e) if isinstance(n, Load) for i in n.index)
            if depends(e, {var}) and (not slices or depends(e.conds, {var})):
                break
            outside = var
        (load,) = (n for n in walk(e) if isinstance(n, Load))
        try:
            k = stage_window(k, e, outside, fresh(k, f"{load.buf}_padded"))
        except CompileError:  # its law does not hold here: the condition stays where it is
            continue
    return k


def _one_load(e: If) -> bool:
    return sum(isinstance(n, Load) for n in walk(e)) == 1


def _roll_epilogue(k: Kernel, tile: list[str]) -> Kernel:
    """A heavy epilogue runs as a rolled loop over a copy of the tile in L1, not unrolled in registers.

    Costs one store and one load for each vector, and saves mr*nv copies of its text.
    """
    nests = [x for x in loops_of(k) if x.var == tile[0]]
    last = nests[-1]
    loops, epilogue = chain(last)
    loops, epilogue = loops[: len(tile)], loops[len(tile) - 1].body
    if sum(map(flops, epilogue)) < HEAVY:
        return k
    index = tuple(ix(v) for v in tile)
    held = {s.buf for s in walk(k.body) if isinstance(s, Alloc) and s.memory == "register"}
    copies: Body = ()
    for load in dict.fromkeys(n for n in walk(epilogue) if isinstance(n, Load)):
        if load.buf in held:
            raw = fresh(k, f"{load.buf}_tile")
            shape = tuple(y.extent for y in loops)
            copies += (Alloc(raw, TensorType(load.dtype, shape), "local"),)
            copies += nest(loops, (Store(raw, index, load),))
            epilogue = rewrite(epilogue, partial(_from, old=load, buf=raw))
    serial = [replace(y, kind="serial", extent=y.active or y.extent, active=None) for y in loops]
    rolled = rename(nest(serial, epilogue), {v: fresh(k, f"{v}e") for v in tile})

    def swap(stmts: Body) -> Body:
        out: list[Stmt] = []
        for s in stmts:
            if s is last:
                out += [*copies, *rolled]
            else:
                out.append(replace(s, body=swap(s.body)) if isinstance(s, For) else s)
        return tuple(out)

    return replace(k, body=swap(k.body))


def _from(n: Any, old: Load, buf: str) -> Any:
    return replace(old, buf=buf) if n == old else n


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
    tile = [*rows, *columns]
    if not tile:
        return k
    if c.epilogue_flops < HEAVY:
        return registers(k, tile)
    return _roll_epilogue(registers(_set_apart(k, tile[-1]), tile), tile)


def _set_apart(k: Kernel, var: str) -> Kernel:
    """Put what follows the last sum of a tile into a loop of one iteration, which reads the sums from
    memory: then `registers` gives it tile loops of its own, that can be rolled."""

    def f(loop: For) -> Body:
        sums = [n for n, s in enumerate(loop.body) if isinstance(s, Accumulate)]
        head, epilogue = loop.body[: sums[-1] + 1], loop.body[sums[-1] + 1 :]
        copies: Body = ()
        for load in dict.fromkeys(n for n in walk(epilogue) if isinstance(n, Load) and not n.index):
            raw = fresh(k, f"{load.buf}_tile")
            copies += (Alloc(raw, TensorType(load.dtype), "local"), Store(raw, (), load))
            epilogue = rewrite(epilogue, partial(_from, old=load, buf=raw))
        once = For(fresh(k, f"{var}_once"), 1, "serial", epilogue)
        return (replace(loop, body=(*head, *copies, once)),)

    return at(k, var, f)
