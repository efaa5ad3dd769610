"""Writing at computed places: scatter, scatter_add, scatter_reduce.

Everything is the primitive `scatter`: a copy with elements combined into it, in row-major order.  Half
floats are added up in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minicompile.errors import NotNative
from minicompile.ir.types import i64
from minicompile.ops.aten_index import places
from minicompile.ops.axes import axis, cut, filled, reshaped
from minicompile.ops.build import Handle, emit
from minicompile.ops.elementwise import maximum
from minicompile.ops.promote import cast, constant, widened
from minicompile.ops.registry import composite, identity, sample
from minicompile.ops.samples import floats, ints

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


def combined(
    x: Handle,
    src: Handle,
    reduce: str,
    include_self: bool,
    put: Callable[[Handle, Handle, str], Handle],
) -> Handle:
    """src combined into x by `put(x, values, combine)`; a mean is a sum over a count.

    Without include_self, what is hit starts from the combine's neutral element.
    """
    combine = COMBINES[reduce]
    start = x
    if not include_self:
        nothing = constant(identity(combine, x.dtype), x.dtype, src.type.shape)
        start = put(x, nothing, "set")
    out = put(start, src, combine)
    if reduce != "mean":
        return out
    ones = filled(src.shape, 1, i64)
    count = maximum(put(filled(x.shape, int(include_self), i64), ones, "add"), 1)
    if not x.dtype.is_float:
        return emit("floor_div", out, cast(count, x.dtype))
    total = widened(out)
    return cast(total / cast(count, total.dtype), x.dtype)


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
    for k, n in enumerate(index.shape):
        src = cut(src, k, 0, n)

    def put(x: Handle, values: Handle, combine: str) -> Handle:
        return _along(x, dim, index, values, combine)

    return combined(self, src, reduce, include_self, put)
