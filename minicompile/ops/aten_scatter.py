"""Writing at computed places: scatter, index_put, index_add, index_copy, index_fill, put.

Everything is the primitive `scatter`: a copy with elements combined into it, in row-major order.  Half
floats are added up in f32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minicompile.errors import NotNative
from minicompile.ir.types import i64
from minicompile.ops.aten_index import from_front, places, subscripts
from minicompile.ops.axes import axis, chosen, cut, expanded, filled, moved, reshaped
from minicompile.ops.build import Handle, broadcast_all, broadcast_to, emit
from minicompile.ops.elementwise import maximum
from minicompile.ops.promote import cast, constant, number, widened
from minicompile.ops.registry import composite, identity, sample
from minicompile.ops.samples import bools, floats, ints

COMBINES = {
    "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min",
    "mean": "add",
}  # fmt: skip


def scattered(
    x: Handle, src: Handle, indices: Sequence[Handle], dims: Sequence[int], combine: str
) -> Handle:
    """The primitive; what combines half floats does so in f32."""
    if combine == "set":
        return emit("scatter", x, src, *indices, dims=tuple(dims), combine=combine)
    if x.dtype.kind in "bc":
        raise NotNative(f"scatter with {combine} on {x.dtype}")
    a, b = widened(x), widened(src)
    return cast(emit("scatter", a, b, *indices, dims=tuple(dims), combine=combine), x.dtype)


def _along(self: Handle, dim: int, index: Handle, src: Handle, combine: str) -> Handle:
    """``result[index[i, j], j] = combine(that, src[i, j])`` for dim 0; src may be larger than index."""
    if self.ndim == 0 or index.ndim == 0:
        one, flat = reshaped(self, self.shape or (1,)), reshaped(index, index.shape or (1,))
        return reshaped(_along(one, 0, flat, reshaped(src, src.shape or (1,)), combine), self.shape)
    index, d = cast(index, i64), axis(dim, self.ndim)
    for k, n in enumerate(index.shape):
        src = cut(src, k, 0, n)
    return scattered(self, src, places(index, d), range(self.ndim), combine)


_SRC = [
    sample(floats(3, 4), 1, ints(3, 2, low=0, high=4), floats(3, 3)),
    sample(floats(3, 4), 0, ints(1, 4, low=0, high=3), floats(2, 4)),
    sample(floats(), 0, ints(low=0, high=1), floats()),
]


@composite("scatter.src", samples=_SRC)
def scatter_src(self: Handle, dim: int, index: Handle, src: Handle) -> Handle:
    """A copy of self with ``result[index[i, j], j] = src[i, j]`` (dim 0)."""
    return _along(self, dim, index, src, "set")


@composite("scatter.value", samples=[sample(floats(3, 4), 1, ints(3, 2, low=0, high=4), 2.5)])
def scatter_value(self: Handle, dim: int, index: Handle, value: Any) -> Handle:
    """A copy of self with ``result[index[i, j], j] = value`` (dim 0)."""
    return _along(self, dim, index, constant(value, self.dtype, index.shape), "set")


@composite("scatter_add", samples=_SRC)
def scatter_add(self: Handle, dim: int, index: Handle, src: Handle) -> Handle:
    """A copy of self with ``result[index[i, j], j] += src[i, j]`` (dim 0)."""
    return _along(self, dim, index, src, "add")


@composite("scatter.reduce", samples=[sample(*_SRC[0].args, reduce="multiply")])
def scatter_with(self: Handle, dim: int, index: Handle, src: Handle, *, reduce: str) -> Handle:
    """A copy of self into which src is added or multiplied."""
    return _along(self, dim, index, src, COMBINES[reduce])


@composite(
    "scatter.value_reduce",
    samples=[sample(floats(3, 4), 1, ints(3, 2, low=0, high=4), 2.5, reduce="add")],
)
def scatter_value_with(self: Handle, dim: int, index: Handle, value: Any, *, reduce: str) -> Handle:
    """A copy of self into which a number is added or multiplied."""
    src = constant(value, self.dtype, index.shape)
    return _along(self, dim, index, src, COMBINES[reduce])


_REDUCE = [
    sample(*_SRC[0].args, reduce, include_self=include)
    for reduce in ("sum", "prod", "amax", "amin", "mean")
    for include in (True, False)
]


@composite("scatter_reduce.two", samples=_REDUCE)
def scatter_reduce(
    self: Handle, dim: int, index: Handle, src: Handle, reduce: str, *, include_self: bool = True
) -> Handle:
    """A copy of self into which src is combined; without include_self, what is hit starts from nothing."""
    combine = COMBINES[reduce]
    ones = filled(index.shape, 1, i64)
    x = self
    if not include_self:
        nothing = constant(identity(combine, x.dtype), x.dtype, index.shape)
        x = _along(x, dim, index, nothing, "set")
    out = _along(x, dim, index, src, combine)
    if reduce != "mean":
        return out
    start = filled(self.shape, 1 if include_self else 0, i64)
    return _shared(out, maximum(_along(start, dim, index, ones, "add"), 1))


def _shared(total: Handle, count: Handle) -> Handle:
    """total / count; integers are rounded down."""
    if total.dtype.is_float:
        wide = widened(total)
        return cast(wide / cast(count, wide.dtype), total.dtype)
    return emit("floor_div", total, cast(count, total.dtype))


def _rows(self: Handle, dim: int, index: Handle, source: Handle, combine: str) -> Handle:
    """Whole slices combined into the places `index` (a vector) of an axis."""
    index = cast(reshaped(index, index.shape or (1,)), i64)
    if self.ndim == 0:
        out = _rows(reshaped(self, (1,)), 0, index, reshaped(source, (1,)), combine)
        return reshaped(out, ())
    d = axis(dim, self.ndim)
    source = reshaped(source, (*self.shape[:d], index.shape[0], *self.shape[d + 1 :]))
    return scattered(self, moved(source, (d,), (0,)), [index], [d], combine)


_ROWS = [
    sample(floats(3, 4), 1, ints(2, low=0, high=4), floats(3, 2)),
    sample(floats(5), 0, ints(7, low=0, high=5), floats(7)),
]


@composite("index_add", samples=[*_ROWS, sample(*_ROWS[0].args, alpha=2)])
def index_add(self: Handle, dim: int, index: Handle, source: Handle, *, alpha: Any = 1) -> Handle:
    """A copy of self with ``alpha * source`` added to the places `index` of an axis."""
    if alpha != 1:
        wide = widened(source)
        source = cast(wide * number(alpha, wide.dtype), source.dtype)
    return _rows(self, dim, index, source, "add")


@composite("index_copy", samples=[sample(floats(3, 4), 0, ints(1, low=0, high=3), floats(1, 4))])
def index_copy(self: Handle, dim: int, index: Handle, source: Handle) -> Handle:
    """A copy of self in which the places `index` of an axis are those of source."""
    return _rows(self, dim, index, source, "set")


@composite(
    "index_reduce",
    samples=[
        sample(*_ROWS[0].args, "amax"),
        sample(*_ROWS[1].args, "prod"),
        sample(*_ROWS[1].args, "mean", include_self=False),
    ],
)
def index_reduce(
    self: Handle, dim: int, index: Handle, source: Handle, reduce: str, *, include_self: bool = True
) -> Handle:
    """A copy of self in which source is combined into the places `index` of an axis."""
    combine = COMBINES[reduce]
    x, slices = self, tuple(source.shape)
    if not include_self:
        nothing = constant(identity(combine, x.dtype), x.dtype, slices)
        x = _rows(x, dim, index, nothing, "set")
    out = _rows(x, dim, index, source, combine)
    if reduce != "mean":
        return out
    start = filled(self.shape, 1 if include_self else 0, i64)
    count = _rows(start, dim, index, filled(slices, 1, i64), "add")
    return _shared(out, maximum(count, 1))


@composite("index_fill.int_Scalar", samples=[sample(floats(3, 4), 1, ints(2, low=-4, high=4), 2.5)])
def index_fill(self: Handle, dim: int, index: Handle, value: Any) -> Handle:
    """A copy of self with a number at the places `index` of an axis, which may be negative."""
    size = self.shape[axis(dim, self.ndim)] if self.ndim else 1
    n = math.prod(index.shape)
    shape = [n if d == axis(dim, self.ndim) else m for d, m in enumerate(self.shape)] or [1]
    source = constant(value, self.dtype, tuple(shape))
    return _rows(self, dim, from_front(index, size), source, "set")


@composite(
    "index_fill.int_Tensor", samples=[sample(floats(3, 4), 1, ints(2, low=0, high=4), floats())]
)
def index_fill_tensor(self: Handle, dim: int, index: Handle, value: Handle) -> Handle:
    """A copy of self with a 0-d tensor's value at the places `index` of an axis."""
    size = self.shape[axis(dim, self.ndim)] if self.ndim else 1
    n = math.prod(index.shape)
    shape = [n if d == axis(dim, self.ndim) else m for d, m in enumerate(self.shape)] or [1]
    source = expanded(cast(value, self.dtype), shape)
    return _rows(self, dim, from_front(index, size), source, "set")


_PUT = [
    sample(floats(3, 4), (ints(2, low=-3, high=3),), floats(2, 4)),
    sample(
        floats(3, 4, 5), (None, ints(2, low=0, high=4), ints(2, low=0, high=5)), floats(1), True
    ),
    sample(
        floats(3, 4, 5), (ints(2, low=0, high=3), None, ints(2, low=0, high=5)), floats(2, 4), True
    ),
]


@composite("index_put", "_unsafe_index_put", samples=_PUT)
def index_put(
    self: Handle, indices: Sequence[Handle | None], values: Handle, accumulate: bool = False
) -> Handle:
    """A copy of self with ``self[indices] = values`` (or ``+=``); None addresses a whole axis.

    A mask as the only index is a `where`.
    """
    real = [i for i in indices if i is not None]
    if len(real) == 1 and real[0].dtype.kind == "b" and values.ndim == 0 and not accumulate:
        return _masked(self, indices, values)
    found, dims = subscripts(self, indices)
    n, first, x = found[0].ndim, dims[0], self
    rest = [m for d, m in enumerate(x.shape) if d not in dims]
    if dims == list(range(first, first + len(dims))):  # the values' axes lie as in `index`
        shape = (*rest[:first], *found[0].shape, *rest[first:])
        source = moved(broadcast_to(values, shape), range(first, first + n), range(n))
    else:
        source = broadcast_to(values, (*found[0].shape, *rest))
    return scattered(x, cast(source, x.dtype), found, dims, "add" if accumulate else "set")


def _masked(x: Handle, indices: Sequence[Handle | None], value: Handle) -> Handle:
    """``x[mask] = value``: the mask covers the axes from its place in `indices` on."""
    first = next(d for d, i in enumerate(indices) if i is not None)
    mask = indices[first]
    assert mask is not None
    dims = tuple(range(first, first + mask.ndim))
    hit = emit("broadcast", mask, shape=x.shape, dims=dims)
    return chosen(hit, broadcast_to(cast(value, x.dtype), x.shape), x)


@composite("put", samples=[sample(floats(3, 4), ints(5, low=-12, high=12), floats(5), True)])
def put(self: Handle, index: Handle, source: Handle, accumulate: bool = False) -> Handle:
    """A copy of self with source put (or added) into places of the flat tensor."""
    n = math.prod(self.shape)
    at = reshaped(from_front(index, n), (math.prod(index.shape),))
    flat = scattered(
        reshaped(self, (n,)), reshaped(source, at.shape), [at], [0], "add" if accumulate else "set"
    )
    return reshaped(flat, self.shape)


@composite("masked_scatter", samples=[sample(floats(3, 4), bools(4), floats(3, 4))])
def masked_scatter(self: Handle, mask: Handle, source: Handle) -> Handle:
    """A copy of self in which the elements under the mask are those of source, one after the other."""
    x, hit = broadcast_all(self, mask)
    n = math.prod(x.shape)
    if not n or not math.prod(source.shape):
        raise NotNative("masked_scatter without elements")
    rank = emit("scan_sum", cast(reshaped(hit, (n,)), i64), dim=0)
    flat = reshaped(source, (math.prod(source.shape),))
    values = emit("gather", flat, maximum(rank - 1, 0), dims=(0,))
    return chosen(hit, reshaped(values, x.shape), x)
