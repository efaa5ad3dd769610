"""Softmax, its logarithm, and log-sum-exp: all subtract the largest element first.

A row of -inf alone gives NaN in softmax, as in eager: -inf - (-inf) is NaN.
"""

from __future__ import annotations

import math

from minicompile.ir.types import DType, f32
from minicompile.ops import elementwise as el
from minicompile.ops.axes import spread
from minicompile.ops.build import Handle
from minicompile.ops.promote import cast, floating, stored, widened
from minicompile.ops.reducing import axes_of, kept, over
from minicompile.ops.reduction import reduce_all, reduce_max, reduce_sum
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats, ints

SAMPLES = [
    sample(floats(3, 4), -1, False),
    sample(floats(3, 4, 2), 1, False),
    sample(floats(), 0, False),
    sample(floats(3, 0), 1, False),
    sample(floats(2, 9, low=-200, high=200), 1, False),
]


def softmax_of(x: Handle, dims: tuple[int, ...]) -> Handle:
    """exp(x - max) / sum(exp(x - max)) over axes; x is in its computing dtype."""
    e = el.exp(x - spread(over(reduce_max, x, dims), dims, x.shape))
    return e / spread(over(reduce_sum, e, dims), dims, x.shape)


@composite("_softmax", samples=SAMPLES)
def softmax(self: Handle, dim: int, half_to_float: bool) -> Handle:
    """exp(x) / sum(exp(x)) along an axis; f32 from half floats if half_to_float."""
    return cast(softmax_of(widened(self), axes_of(self, dim)), _result(self, half_to_float))


@composite("_log_softmax", samples=SAMPLES)
def log_softmax(self: Handle, dim: int, half_to_float: bool) -> Handle:
    """x - log(sum(exp(x))) along an axis, as (x - max) - log(sum(exp(x - max))).

    Along the last axis eager keeps the sum and its logarithm in the dtype of x; so do half floats here.
    """
    x, dims = widened(self), axes_of(self, dim)
    shifted = x - spread(over(reduce_max, x, dims), dims, x.shape)
    total = over(reduce_sum, el.exp(shifted), dims)
    if dims == (self.ndim - 1,):
        total = stored(el.log(stored(total, self.dtype)), self.dtype)
    else:
        total = el.log(total)
    return cast(shifted - spread(total, dims, x.shape), _result(self, half_to_float))


def _result(x: Handle, half_to_float: bool) -> DType:
    return f32 if half_to_float else x.dtype


@composite("_safe_softmax", samples=[sample(floats(3, 4), -1), sample(floats(3, 4), 0)])
def safe_softmax(self: Handle, dim: int, dtype: DType | None = None) -> Handle:
    """softmax, with 0 instead of NaN for a row of -inf alone."""
    result, dims = dtype or self.dtype, axes_of(self, dim)
    x = widened(cast(self, result))
    dead = over(reduce_all, el.eq(x, -math.inf), dims)
    return cast(el.where(spread(dead, dims, x.shape), 0.0, softmax_of(x, dims)), result)


@composite(
    "logsumexp",
    samples=[
        sample(floats(3, 4), (1,)),
        sample(floats(3, 4, 2), (0, 2), True),
        sample(ints(3, 4), (0,)),
        sample(floats(), (0,)),
        sample(floats(3, 0), (1,)),
    ],
)
def logsumexp(self: Handle, dim: tuple[int, ...] | int, keepdim: bool = False) -> Handle:
    """log(sum(exp(x))) over axes; an infinite largest element is not subtracted, so -inf stays -inf."""
    dims = axes_of(self, dim)

    def formula(x: Handle) -> Handle:
        top = over(reduce_max, x, dims)
        top = el.where(el.isinf(top), 0.0, top)
        total = over(reduce_sum, el.exp(x - spread(top, dims, x.shape)), dims)
        return el.log(total) + top

    return kept(floating(formula, self), self, dims, keepdim)
