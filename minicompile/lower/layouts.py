"""Transforms of memory: join dimensions and loops, copy operands to where the nest wants them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from minicompile.ir.index import Index, add, bounds, ix, times
from minicompile.ir.loop import (
    Accumulate,
    Alloc,
    Bind,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Name,
    Store,
    dtype_of,
)
from minicompile.ir.types import TensorType
from minicompile.ir.walk import rewrite, walk
from minicompile.lower.analysis import (
    Body,
    accesses,
    depends,
    find,
    flops,
    loops_of,
    span,
    written,
)
from minicompile.lower.transforms import at, fresh, need, nest, rename

# ---------------------------------------------------------------------------------- joining


def collapse(k: Kernel, outer: str, inner: str) -> Kernel:
    """The inverse of split: ``for i < a: for j < b`` becomes ``for i < a*b``, with i*b + j -> i.

        for i < 26: for j < 26: y[c, i, j] = relu(x[c, i, j])   ->   for i < 676: y[c, i] = relu(x[c, i])

    Law: i and j occur only as i*b + j.  So that they do, neighbouring dimensions [i, j] of the buffers
    are joined first, where memory allows.
    """
    for buf in {a.buf for a in accesses(find(k, outer))}:
        k = _join_where(k, buf, outer, inner)
    b = find(k, inner).extent

    def f(loop: For) -> Body:
        below = loop.body[0]
        need(len(loop.body) == 1 and isinstance(below, For), k, f"{outer} holds more than {inner}")
        assert isinstance(below, For)
        need(below.var == inner, k, f"{inner} is not directly inside {outer}")
        body = rewrite(below.body, lambda n: _joined(k, n, outer, inner, b))
        return (replace(loop, extent=loop.extent * b, body=body),)

    return at(k, outer, f)


def _joined(k: Kernel, n: Any, outer: str, inner: str, b: int) -> Any:
    if not isinstance(n, Index):
        return n
    coefs = dict(n.terms)
    i, j = coefs.get(outer, 0), coefs.pop(inner, 0)
    need(i == j * b, k, f"{outer} and {inner} do not only occur as {outer}*{b} + {inner}")
    need(not depends(Index(tuple((a, 1) for a in coefs if a != outer)), {outer, inner}), k,
         f"{outer} or {inner} is divided")  # fmt: skip
    if i:
        coefs[outer] = j
    return Index(tuple(coefs.items()), n.const)


def _join_where(k: Kernel, buf: str, outer: str, inner: str) -> Kernel:
    """Join the dimensions of buf that outer and inner index, if they are neighbours."""
    for a in accesses(find(k, outer)):
        if a.buf == buf:
            dims = [[d for d, i in enumerate(a.index) if depends(i, {v})] for v in (outer, inner)]
            if len(dims[0]) == len(dims[1]) == 1 and dims[1][0] == dims[0][0] + 1:
                return join(k, buf, dims[0][0])
    return k


def join(k: Kernel, buf: str, dim: int) -> Kernel:
    """Dimensions dim and dim+1 of a buffer become one: ``x[i, j]`` is ``x[i*n + j]``. Memory stays.

    Law: stepping once along dim is stepping n times along dim+1.
    """
    types = {p.name: p.type for p in k.params}
    types |= {s.buf: s.type for s in walk(k.body) if isinstance(s, Alloc)}
    t = types[buf]
    shape, strides = list(t.dims), list(t.dense_strides)
    n = shape[dim + 1]
    need(
        strides[dim] == n * strides[dim + 1], k, f"dimensions {dim}, {dim + 1} of {buf} have a gap"
    )
    shape[dim : dim + 2] = [shape[dim] * n]
    del strides[dim]
    joined = TensorType(t.dtype, tuple(shape), tuple(strides) if t.strides is not None else None)

    def one(s: Any) -> Any:
        if isinstance(s, (Load, Store, Accumulate)) and s.buf == buf:
            merged = add(times(s.index[dim], n), s.index[dim + 1])
            return replace(s, index=(*s.index[:dim], merged, *s.index[dim + 2 :]))
        return replace(s, type=joined) if isinstance(s, Alloc) and s.buf == buf else s

    params = tuple(replace(p, type=joined) if p.name == buf else p for p in k.params)
    return replace(k, params=params, body=rewrite(k.body, one))


# ---------------------------------------------------------------------------------- staging


def stage(
    k: Kernel, e: Expr, outside: str, loops: list[str], buf: str, order: list[str] | None = None
) -> Kernel:
    """Compute the expression `e` for all values of `loops` into a local buffer first, and read that.

    The buffer has one dimension for each of `loops` (all below `outside`), in this order; it is filled
    first thing in `outside`'s body, by loops in `order` (default: the same).  Law: what `e` reads is not written below `outside`, and `e` depends
    on no other loop below it.
    """
    inside = {x.var: x for x in loops_of(find(k, outside).body)}
    names = varying_below(k, outside)
    need(not depends(e, names - set(loops)), k, f"{buf} depends on more than {loops}")
    index = tuple(ix(v) for v in loops)
    fill = [For(v, inside[v].active or inside[v].extent, "serial", ()) for v in order or loops]
    copy = rename(nest(fill, (Store(buf, index, e),)), {v: fresh(k, f"{v}p") for v in loops})
    shape = tuple(inside[v].extent for v in loops)
    return _insert(k, outside, e, buf, shape, copy, index)


def stage_window(k: Kernel, e: If, outside: str, buf: str) -> Kernel:
    """Copy a padded operand, padding included, into a local buffer: no conditions in the inner loops.

        acc += (x[c, h + p - 1, q] if 0 <= h + p - 1 < 28 else 0.0) * ...
        ->  x_padded[c, hp, q] for all hp = h + p first;  acc += x_padded[c, h + p, q] * ...

    The buffer has the dimensions of the operand that vary below `outside`, each as wide as its index
    ranges.  Law: as `stage`; conditions only look at the indices themselves.
    """
    (load,) = (n for n in walk(e) if isinstance(n, Load))
    names = varying_below(k, outside)
    extents = {x.var: span(x) for x in loops_of(find(k, outside).body if outside else k)}
    dims = [i for i in load.index if depends(i, names)]
    need(len(set(dims)) == len(dims), k, f"{load.buf} is read along a diagonal")
    fill: list[For] = []
    place: list[Index] = []
    env: dict[Index, Index] = {}
    for n, i in enumerate(dims):
        limits = bounds(i, extents)
        need(limits is not None, k, f"the range of an index of {load.buf} is not known")
        assert limits is not None
        var = fresh(k, f"{buf}_{n}")
        fill.append(For(var, limits[1] - limits[0] + 1, "serial", ()))
        place.append(add(i, ix(const=-limits[0])))
        env[i] = ix(var, const=limits[0])
    copy = rewrite(e, lambda n: env.get(n, n) if isinstance(n, Index) else n)
    need(not depends(copy, names), k, f"conditions on {load.buf} look at more than its indices")
    target = Store(buf, tuple(ix(x.var) for x in fill), copy)
    return _insert(
        k, outside, e, buf, tuple(x.extent for x in fill), nest(fill, (target,)), tuple(place)
    )


def varying_below(k: Kernel, outside: str) -> set[str]:
    """Loop variables and bound names that come into being below a loop ("": in the kernel)."""
    body = find(k, outside).body if outside else k.body
    return {x.var for x in loops_of(body)} | {n.name for n in walk(body) if isinstance(n, Bind)}


def _insert(
    k: Kernel, outside: str, e: Expr, buf: str, shape: tuple[int, ...], fill: Body,
    index: tuple[Index, ...],
) -> Kernel:  # fmt: skip
    """Declare and fill `buf` at the start of the loop `outside` ("": the kernel); read it for `e`."""
    reads = {n.buf for n in walk(e) if isinstance(n, Load)}
    dtype = dtype_of(e)

    def with_copy(body: Body) -> Body:
        need(not reads & written(body), k, f"{buf} would be a copy of what changes")
        read = rewrite(body, lambda n: Load(buf, index, dtype) if n == e else n)
        return (Alloc(buf, TensorType(dtype, shape), "local"), *fill, *read)

    if not outside:
        return replace(k, body=with_copy(k.body))
    return at(k, outside, lambda loop: (replace(loop, body=with_copy(loop.body)),))


def stage_invariants(k: Kernel, outside: str, lanes: list[str], least: int) -> Kernel:
    """Binds in a tile that only depend on the lanes are computed once for each panel.

        for io: ... for ir: for jv:               s_panel[jv] = rsqrt(v[jo*16 + jv] + eps)   (once)
            s = rsqrt(v[jo*16 + jv] + eps)   ->   for io: ... for ir: for jv: s = s_panel[jv]

    Binds that cost fewer than `least` additions are left alone.
    """
    names = varying_below(k, outside) - set(lanes)
    known: dict[str, Expr] = {}
    changed = written(find(k, outside).body)
    for s in walk(find(k, outside).body):
        if isinstance(s, Bind):
            value = _inlined(s.value, known)
            fixed = depends(value, set(lanes)) and not depends(value, names)
            if fixed and not {n.buf for n in walk(value) if isinstance(n, Load)} & changed:
                known[s.name] = value
    for name, value in known.items():
        if flops(value) >= least:
            k = replace(k, body=rewrite(k.body, partial(_rebound, name=name, value=value)))
            k = stage(k, value, outside, lanes, fresh(k, f"{name}_panel"))
    return k


def _inlined(e: Expr, known: dict[str, Expr]) -> Expr:
    return rewrite(e, lambda n: known.get(n.name, n) if isinstance(n, Name) else n)


def _rebound(n: Any, name: str, value: Expr) -> Any:
    return replace(n, value=value) if isinstance(n, Bind) and n.name == name else n
