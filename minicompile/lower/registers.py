"""The two transforms that make register tiles: `registers` (outputs) and `rfactor` (sums)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from minicompile.ir.index import Index, ix, variables
from minicompile.ir.loop import (
    Accumulate,
    Alloc,
    Bind,
    Const,
    Fold,
    For,
    Kernel,
    Load,
    Name,
    Stmt,
    Store,
    dtype_of,
)
from minicompile.ir.types import DType, TensorType
from minicompile.ir.walk import rewrite, walk
from minicompile.lower.analysis import Body, allocated, carried, chain, depends, find, written
from minicompile.lower.machine import LANES
from minicompile.lower.transforms import at, fresh, mark, need, nest, pad_vector
from minicompile.ops.registry import identity

# ---------------------------------------------------------------------------------- registers


def registers(k: Kernel, tile: list[str]) -> Kernel:
    """Push the perfectly nested loops `tile` to the innermost place: a block of elements at once.

        for i: for j:                           acc: f32[6, 16] @ register
            acc: f32 @ register                 for i: for j: acc[i, j] = 0.0
            acc[] = 0.0                  ->     for k:
            for k: acc[] += x[i, k]*w[j, k]         for i: for j: acc[i, j] += x[i, k]*w[j, k]
            y[i, j] = acc[]                     for i: for j: y[i, j] = acc[i, j]

    Expand: what an iteration allocates, or binds for a later nest, becomes one per iteration.
    Distribute: each run of plain statements gets the tile loops for itself. Interchange: the loops
    between them (k) end up outside.  Tile loops are unrolled, since registers have no addresses.
    Law: iterations of the tile loops are independent.
    """

    def f(outermost: For) -> Body:
        loops = chain(outermost)[0][: len(tile)]
        need([x.var for x in loops] == tile, k, f"{tile} are not perfectly nested")
        for x in loops:
            met = carried(x)
            need(not met, k, f"iterations of {x.var} meet in {met}")
        loops = tuple(x if x.kind == "vector" else replace(x, kind="unroll") for x in loops)
        body = _expand(k, loops, _expand_binds(k, loops, loops[-1].body))
        return _distribute(loops, body, written(body))

    return at(k, tile[0], f)


def _distribute(tile: tuple[For, ...], stmts: Body, changed: set[str]) -> Body:
    """Allocations stay single; serial loops stay outside the tile; runs of other statements go inside."""
    out: list[Stmt] = []
    run: list[Stmt] = []
    for s in (*stmts, None):
        if run and (s is None or _pierced(s)):
            single, each = _single(tile, run, changed)
            out += [*single, *nest(tile, each)] if each else single
            run = []
        if isinstance(s, For) and _pierced(s):
            out.append(replace(s, body=_distribute(tile, s.body, changed)))
        elif isinstance(s, Alloc):
            out.append(s)
        elif s is not None:
            run.append(s)
    return tuple(out)


def _single(tile: tuple[For, ...], run: list[Stmt], changed: set[str]) -> tuple[Body, Body]:
    """(binds that are the same for the whole tile, the other statements)"""
    names = {x.var for x in tile}
    single: list[Stmt] = []
    each: list[Stmt] = []
    for s in run:
        reads = {n.buf for n in walk(s) if isinstance(n, Load)}
        if isinstance(s, Bind) and not depends(s.value, names) and not reads & changed:
            single.append(s)
        else:
            each.append(s)
            names |= {n.name for n in walk(s) if isinstance(n, Bind)}
    return tuple(single), tuple(each)


def _pierced(s: Stmt) -> bool:
    """Tile loops move into serial loops; a loop of lanes or copies is one statement of the tile."""
    return isinstance(s, For) and s.kind == "serial"


def _expand(k: Kernel, tile: tuple[For, ...], body: Body) -> Body:
    """Every buffer allocated in the body gets the tile's dimensions; those of lanes come last."""
    private = {s.buf: s for s in walk(body) if isinstance(s, Alloc)}
    extra = tuple(ix(x.var) for x in tile)
    shape = tuple(x.extent for x in tile)
    body = _fold_rows(k, body, set(private))
    outside = not any(x.kind == "vector" for x in tile)

    def one(n: Any) -> Any:
        if isinstance(n, (Load, Store, Accumulate)) and n.buf in private:
            return replace(n, index=extra + n.index if outside else n.index + extra)
        if isinstance(n, Alloc) and n.buf in private:
            own = n.type.dims
            return replace(n, type=n.type.with_shape(shape + own if outside else own + shape))
        return n

    return rewrite(body, one)


def _fold_rows(k: Kernel, body: Body, private: set[str]) -> Body:
    """A fold of lanes that are about to become a tile folds a copy of one row: registers are free."""
    out: list[Stmt] = []
    for s in body:
        folds = [n for n in walk(s) if isinstance(n, Fold) and n.buf in private]
        if isinstance(s, For):
            s = replace(s, body=_fold_rows(k, s.body, private))
        else:
            for n in folds:
                row, lane = fresh(k, f"{n.buf}_row"), fresh(k, f"{n.buf}_lane")
                copy = Store(row, (ix(lane),), Load(n.buf, (ix(lane),), n.dtype))
                out.append(Alloc(row, TensorType(n.dtype, (LANES,)), "register"))
                out.append(For(lane, LANES, "vector", (copy,)))
                s = rewrite(s, partial(_renamed, old=n, buf=row))
        out.append(s)
    return tuple(out)


def _renamed(n: Any, old: Fold, buf: str) -> Any:
    return replace(old, buf=buf) if n == old else n


@dataclass
class _Runs:
    """Which run of statements (see _distribute) binds each name, and which ones use it."""

    count: int = 0
    bound: dict[str, int] = field(default_factory=dict)
    crossing: set[str] = field(default_factory=set)  # used as a value in another run
    indices: set[str] = field(default_factory=set)  # used as an index in another run

    def visit(self, stmts: Body) -> None:
        self.count += 1
        for s in stmts:
            if isinstance(s, For) and _pierced(s):
                self.visit(s.body)
                self.count += 1
                continue
            for n in walk(s):
                used = {n.name} if isinstance(n, Name) else set()
                used |= variables(n) if isinstance(n, Index) else set()
                late = {v for v in used if self.bound.get(v, self.count) != self.count}
                (self.crossing if isinstance(n, Name) else self.indices).update(late)
            self.bound |= {n.name: self.count for n in walk(s) if isinstance(n, Bind)}


def _expand_binds(k: Kernel, tile: tuple[For, ...], body: Body) -> Body:
    """A scalar that a later run uses lives in a register tile instead of a name."""
    runs = _Runs()
    runs.visit(body)
    need(not runs.indices, k, f"{sorted(runs.indices)} are bound too early to be used as indices")
    dtypes: dict[str, DType] = {
        s.name: s.dtype for s in walk(body) if isinstance(s, Bind) and s.name in runs.crossing
    }

    def one(n: Any) -> Any:
        if isinstance(n, Name) and n.name in dtypes:
            return Load(n.name, (), n.dtype)
        if isinstance(n, Bind) and n.name in dtypes:
            return Store(n.name, (), n.value, n.origins)
        return n

    allocs = tuple(Alloc(name, TensorType(dtype), "register") for name, dtype in dtypes.items())
    return (*allocs, *rewrite(body, one))


# ---------------------------------------------------------------------------------- rfactor


def rfactor(k: Kernel, first: str, last: str, vectors: list[tuple[str, str]], ways: int) -> Kernel:
    """Several accumulators for one sum, folded at the end.

        acc[] = 0.0                       part: f32[4, 16] @ register
        for k: acc[] += x[k]              for u in unroll(4): for v in vector(16): part[u, v] = 0.0
                                   ->     for ko: for ku in unroll(4): for kv in vector(16):
                                              part[ku, kv] += x[ko*64 + ku*16 + kv]
                                          acc[] += fold_add(part)

    `first` and `last` are the reduction's outermost loops (more than one where a tail was cut off),
    `vectors` its innermost: (unrolled or "", vector), which are marked so.  Law: the combine is
    associative and commutative (floats: PyTorch, too, adds in any order).
    """
    sums = _sums((find(k, first), find(k, last)))
    parts = {acc: fresh(k, f"{acc}_part") for acc in sums}
    for unrolled, vector in vectors:
        place = (ix(unrolled) if unrolled else ix(), ix(vector))[-min(ways, 2) :]
        k = at(k, vector, partial(_into_parts, parts=parts, place=place))
        k = pad_vector(k, vector)
        k = mark(k, unrolled, "unroll") if unrolled else k
    before: Body = ()
    after: Body = ()
    for acc, (op, dtype) in sums.items():
        before += _cleared(k, parts[acc], op, dtype, ways)
        after += (Accumulate(acc, (), Fold(op, parts[acc], dtype), op),)
    k = at(k, first, lambda loop: (*before, loop))
    return at(k, last, lambda loop: (loop, *after))


def _sums(roots: Body) -> dict[str, tuple[str, DType]]:
    """The scalars accumulated below the roots: buffer -> (combine, dtype)."""
    inside = allocated(roots)
    return {
        s.buf: (s.op, dtype_of(s.value))
        for s in walk(roots)
        if isinstance(s, Accumulate) and not s.index and s.buf not in inside
    }


def _into_parts(loop: For, parts: dict[str, str], place: tuple[Index, ...]) -> Body:
    def one(n: Any) -> Any:
        if isinstance(n, Accumulate) and n.buf in parts and not n.index:
            return replace(n, buf=parts[n.buf], index=place)
        return n

    return (replace(loop, body=rewrite(loop.body, one)),)


def _cleared(k: Kernel, part: str, op: str, dtype: DType, ways: int) -> Body:
    """The declaration of the partial sums, set to the neutral element of `op`."""
    u, v = fresh(k, f"{part}_u"), fresh(k, f"{part}_v")
    zero = Const(identity(op, dtype), dtype)
    if ways == 1:
        clear = For(v, LANES, "vector", (Store(part, (ix(v),), zero),))
        return (Alloc(part, TensorType(dtype, (LANES,)), "register"), clear)
    loops = (For(u, ways, "unroll", ()), For(v, LANES, "vector", ()))
    body = nest(loops, (Store(part, (ix(u), ix(v)), zero),))
    return (Alloc(part, TensorType(dtype, (ways, LANES)), "register"), *body)
