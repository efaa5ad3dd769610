"""Functions made of logarithms, with care where they meet 0, 1 and inf."""

from __future__ import annotations

import math

from minicompile.ops import elementwise as el
from minicompile.ops.build import Handle
from minicompile.ops.promote import (
    Operand,
    arithmetic,
    common_dtype,
    float_dtype,
    floating,
    like,
    tensors,
)
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats, ints

PAIR = sample(floats(3, 4), floats(4))


@composite("logit", samples=[sample(floats(9, low=0, high=1)), sample(floats(9), 0.1)])
def logit(self: Handle, eps: float | None = None) -> Handle:
    """log(x / (1 - x)), with x clamped to eps ... 1 - eps if eps is given."""

    dtype = float_dtype(common_dtype(self))

    def clamped(x: Handle) -> Handle:
        if eps is None:
            return x
        return el.where(x < eps, eps, el.where(x > 1.0 - eps, 1.0 - eps, x))

    # each step rounds to the dtype, as the kernel computes in half floats themselves
    x = floating(clamped, self)
    rest = arithmetic(lambda x: 1.0 - x, x)
    return arithmetic(el.log, arithmetic(el.div, x, rest), dtype=dtype)


@composite("logaddexp", samples=[PAIR])
def logaddexp(self: Handle, other: Handle) -> Handle:
    """log(exp(self) + exp(other)), from the larger one; equal infinities give themselves."""

    def formula(a: Handle, b: Handle) -> Handle:
        both = el.eq(a, b) & el.isinf(a)
        far = el.log1p(el.exp(-el.abs(a - b)))
        return el.where(both, a, el.maximum(a, b) + far)

    return floating(formula, self, other)


@composite("logaddexp2", samples=[PAIR])
def logaddexp2(self: Handle, other: Handle) -> Handle:
    """log2(2**self + 2**other), from the larger one; equal infinities give themselves."""

    def formula(a: Handle, b: Handle) -> Handle:
        both = el.eq(a, b) & el.isinf(a)
        far = el.log1p(el.exp2(-el.abs(a - b))) * (1.0 / math.log(2.0))
        return el.where(both, a, el.maximum(a, b) + far)

    return floating(formula, self, other)


@composite(
    "xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self",
    samples=[PAIR, sample(ints(9), 2.0), sample(2, floats(9))],
)  # fmt: skip
def xlogy(self: Operand, other: Operand) -> Handle:
    """self * log(other); 0 where self is 0, NaN where other is NaN."""
    return floating(lambda x, y: _zero_wins(x, y, el.log(y)), *tensors(self, other))


@composite(
    "special_xlog1py", "special_xlog1py.other_scalar", "special_xlog1py.self_scalar",
    samples=[PAIR, sample(ints(9), 2.0), sample(2, floats(9))],
)  # fmt: skip
def xlog1py(self: Operand, other: Operand) -> Handle:
    """self * log(1 + other); 0 where self is 0, NaN where other is NaN."""
    return floating(lambda x, y: _zero_wins(x, y, el.log1p(y)), *tensors(self, other))


def _zero_wins(x: Handle, y: Handle, log: Handle) -> Handle:
    return el.where(el.isnan(y), y, el.where(el.eq(x, 0.0), 0.0, x * log))


@composite("special_entr", samples=[sample(floats(9))])
def entr(self: Handle) -> Handle:
    """-x log(x) above 0, 0 at 0, -inf below."""

    def formula(x: Handle) -> Handle:
        edge = el.where(el.eq(x, 0.0), like(x, 0.0), -math.inf)
        return el.where(el.isnan(x), x, el.where(x > 0.0, -x * el.log(x), edge))

    return floating(formula, self)
