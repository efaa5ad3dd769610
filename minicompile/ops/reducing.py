"""What every reduction of ATen has in common: which axes, keepdim, half floats, 0-d tensors.

reduced(reduce_sum, x, dims=(-1,), keepdim=True)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from minicompile.errors import NotNative
from minicompile.ir.types import bool_, u8
from minicompile.ops import elementwise as el
from minicompile.ops.axes import axes, axis, counting, reshaped, spread
from minicompile.ops.build import Handle
from minicompile.ops.promote import cast
from minicompile.ops.reduction import reduce_all, reduce_any, reduce_max, reduce_min
from minicompile.ops.registry import Emitter

Dims: TypeAlias = "int | Iterable[int] | None"


def axes_of(x: Handle, dims: Dims) -> tuple[int, ...]:
    """The axes that ``dim=`` means: None or () all of them; a 0-d tensor has none."""
    if not x.ndim and dims is not None:
        for d in (dims,) if isinstance(dims, int) else dims:
            axis(d, 0)
    return axes(dims, x.ndim) if x.ndim else ()


def count(x: Handle, dims: tuple[int, ...]) -> int:
    """How many elements one result combines."""
    n = 1
    for d in dims:
        n *= x.shape[d]
    return n


def over(primitive: Emitter, x: Handle, dims: tuple[int, ...]) -> Handle:
    """The reduction over axes; x itself if there are none."""
    return primitive(x, dims=dims) if dims else x


def kept(result: Handle, x: Handle, dims: tuple[int, ...], keepdim: bool) -> Handle:
    """The result of reducing x over `dims`, with the reduced axes as size 1 if keepdim."""
    shape = [1 if d in dims else n for d, n in enumerate(x.shape)]
    return reshaped(result, shape) if keepdim else result


def reduced(primitive: Emitter, x: Handle, dims: Dims = None, keepdim: bool = False) -> Handle:
    """Reduce x (already in its computing dtype) over ``dim=`` as ATen counts it."""
    found = axes_of(x, dims)
    return kept(over(primitive, x, found), x, found, keepdim)


def extreme(largest: bool, x: Handle, dims: tuple[int, ...]) -> Handle:
    """The largest or smallest element; on bools, any or all."""
    if x.dtype is bool_:
        return over(reduce_any if largest else reduce_all, x, dims)
    return over(reduce_max if largest else reduce_min, x, dims)


def place_of_extreme(largest: bool, x: Handle, dim: int) -> tuple[Handle, Handle]:
    """(extreme, its first index) along an axis; the first NaN counts as the extreme.

    The index is the smallest one where x equals its own extreme, or is NaN.
    """
    if x.dtype is bool_:
        values, indices = place_of_extreme(largest, cast(x, u8), dim)
        return cast(values, bool_), indices
    n = x.shape[dim]
    if n == 0:
        raise NotNative("an axis of size 0 has no extreme")
    best = extreme(largest, x, (dim,))
    hit = el.eq(x, spread(best, (dim,), x.shape))
    if x.dtype.is_float:
        hit = hit | el.isnan(x)
    return best, reduce_min(el.where(hit, counting(x.shape, dim), n), dims=(dim,))
