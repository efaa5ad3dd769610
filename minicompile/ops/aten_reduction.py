"""Sums, means, products, counts, any and all.

Integers and bools add up in i64, half floats in f32 with one rounding at the end.
Source of the semantics: aten/src/ATen/native/ReduceOps.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.errors import NotNative
from minicompile.ir.types import DType, bool_, i64, u8
from minicompile.ops import elementwise as el
from minicompile.ops.axes import cut, reshaped
from minicompile.ops.build import Handle
from minicompile.ops.promote import cast, widened
from minicompile.ops.reducing import Dims, axes_of, count, reduced
from minicompile.ops.reduction import reduce_all, reduce_any, reduce_prod, reduce_sum
from minicompile.ops.registry import Emitter, composite, sample
from minicompile.ops.samples import bools, floats, ints

WHOLE = [sample(floats(3, 4)), sample(ints(3, 4)), sample(bools(5)), sample(floats(0, 3))]
ALONG = [
    sample(floats(3, 4, 2), (0, -1)),
    sample(floats(3, 4), (1,), True),
    sample(ints(3, 4), (0,)),
    sample(floats(), (-1,)),
    sample(floats(3, 0), (1,)),
]


def accumulated(x: Handle, dtype: DType | None) -> DType:
    """The dtype of a sum or product: the one asked for, else i64 for integers and bools."""
    return dtype or (x.dtype if x.dtype.is_float else i64)


@composite("sum", samples=WHOLE)
def sum_all(self: Handle, dtype: DType | None = None) -> Handle:
    """The sum of all elements; 0 if there are none."""
    return sum_along(self, None, dtype=dtype)


@composite("sum.dim_IntList", samples=[*ALONG, sample(bools(3, 4), None)])
def sum_along(self: Handle, dim: Dims, keepdim: bool = False, dtype: DType | None = None) -> Handle:
    """The sum over the axes `dim`; None and () mean all."""
    result = accumulated(self, dtype)
    return cast(reduced(reduce_sum, widened(cast(self, result)), dim, keepdim), result)


@composite("mean", samples=[sample(floats(3, 4)), sample(floats(0))])
def mean_all(self: Handle, dtype: DType | None = None) -> Handle:
    """The mean of all elements; NaN if there are none."""
    return mean_along(self, None, dtype=dtype)


@composite("mean.dim", samples=[sample(floats(3, 4, 2), (0, -1)), *ALONG[3:]])
def mean_along(
    self: Handle, dim: Dims, keepdim: bool = False, dtype: DType | None = None
) -> Handle:
    """The sum over the axes `dim`, divided by the number of elements; floats only."""
    result = dtype or self.dtype
    if not result.is_float:
        raise NotNative("PyTorch raises for a mean of integers")
    n = count(self, axes_of(self, dim))
    total = reduced(reduce_sum, widened(cast(self, result)), dim, keepdim)
    return cast(total / float(n), result)


@composite("nansum", samples=[*ALONG, sample(floats(3, 4))])
def nansum(
    self: Handle, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None
) -> Handle:
    """The sum over the axes `dim`, NaN counting as 0."""
    if not self.dtype.is_float:
        return sum_along(self, dim, keepdim, dtype)
    wide = widened(self)
    numbers = cast(el.where(el.isnan(wide), 0.0, wide), self.dtype)
    return sum_along(numbers, dim, keepdim, dtype)


@composite("prod", samples=WHOLE)
def prod_all(self: Handle, dtype: DType | None = None) -> Handle:
    """The product of all elements; 1 if there are none."""
    result = accumulated(self, dtype)
    return cast(reduced(reduce_prod, widened(cast(self, result))), result)


@composite("prod.dim_int", samples=[sample(floats(3, 4), 0), sample(ints(3, 4), -1, True)])
def prod_along(self: Handle, dim: int, keepdim: bool = False, dtype: DType | None = None) -> Handle:
    """The product along one axis."""
    result = accumulated(self, dtype)
    return cast(reduced(reduce_prod, widened(cast(self, result)), dim, keepdim), result)


@composite(
    "count_nonzero", "count_nonzero.dim_IntList",
    samples=[sample(ints(3, 4)), sample(floats(3, 4), 1), sample(ints(3, 4), (0, 1))],
)  # fmt: skip
def count_nonzero(self: Handle, dim: Dims = None) -> Handle:
    """How many elements are not 0, as i64."""
    return reduced(reduce_sum, cast(cast(self, bool_), i64), dim)


@composite("trace", samples=[sample(floats(3, 4)), sample(ints(4, 3))])
def trace(self: Handle) -> Handle:
    """The sum of the diagonal, which is every (columns + 1)-th element in row-major order."""
    rows, columns = self.shape
    n = min(rows, columns)
    flat = reshaped(self, (rows * columns,))
    return sum_all(cut(flat, 0, 0, (n - 1) * (columns + 1) + 1 if n else 0, columns + 1))


# ------------------------------------------------------------------------------ any, all


def _logical(primitive: Emitter, x: Handle, dims: Dims, keepdim: bool) -> Handle:
    """any or all of x != 0. The result is bool, but uint8 for uint8."""
    result = reduced(primitive, cast(x, bool_), dims, keepdim)
    return cast(result, u8) if x.dtype is u8 else result


TRUTHS = [sample(bools(3, 4)), sample(floats(3, 4)), sample(ints(2, dtype=u8)), sample(floats(0))]
TRUTHS_ALONG = [sample(bools(3, 4), 1), sample(ints(3, 4), 0, True), sample(floats(), -1)]
TRUTHS_OVER = [
    sample(bools(3, 4, 2), (0, 1)),
    sample(ints(3, 4), (-1,), True),
    sample(ints(3, 4)),
    sample(ints(3, 4), ()),
]


@composite("any", samples=TRUTHS)
def any_at_all(self: Handle) -> Handle:
    """Is any element not 0?"""
    return _logical(reduce_any, self, None, False)


@composite("any.dim", samples=TRUTHS_ALONG)
def any_along(self: Handle, dim: int, keepdim: bool = False) -> Handle:
    """Is any element along an axis not 0?"""
    return _logical(reduce_any, self, dim, keepdim)


@composite("any.dims", samples=TRUTHS_OVER)
def any_over(self: Handle, dim: Sequence[int] | None = None, keepdim: bool = False) -> Handle:
    """Is any element over the axes not 0? Here () means no axis, and None all."""
    if dim is not None and not dim:
        return cast(cast(self, bool_), u8 if self.dtype is u8 else bool_)
    return _logical(reduce_any, self, dim, keepdim)


@composite("all", samples=TRUTHS)
def all_at_all(self: Handle) -> Handle:
    """Is no element 0?"""
    return _logical(reduce_all, self, None, False)


@composite("all.dim", samples=TRUTHS_ALONG)
def all_along(self: Handle, dim: int, keepdim: bool = False) -> Handle:
    """Is no element along an axis 0?"""
    return _logical(reduce_all, self, dim, keepdim)


@composite("all.dims", samples=TRUTHS_OVER)
def all_over(self: Handle, dim: Sequence[int] | None = None, keepdim: bool = False) -> Handle:
    """Is no element over the axes 0? Here () means no axis, and None all."""
    if dim is not None and not dim:
        return cast(cast(self, bool_), u8 if self.dtype is u8 else bool_)
    return _logical(reduce_all, self, dim, keepdim)
