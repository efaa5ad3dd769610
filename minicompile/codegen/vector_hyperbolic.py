"""Hyperbolic functions and their inverses for f32 (see vector_math); tanh is in vector_exp."""

from __future__ import annotations

import math

from minicompile.codegen.register import Register
from minicompile.codegen.vector_exp import half_expm1
from minicompile.codegen.vector_log import log, log1p
from minicompile.codegen.vector_ops import absolute, copysign, eq, fma, sqrt, where
from minicompile.codegen.vector_polynomial import at_most, f32_only

LARGEST = 89.41598629223294  # sinh and cosh of more are infinite in f32


def _half_growth(x: Register) -> tuple[Register, Register]:
    """(|x|, (e**|x| - 1) / 2), infinite where the result will be."""
    t = absolute(x)
    return t, where(t > LARGEST, math.inf, half_expm1(at_most(t, 89.0 + 0.5)))


@f32_only
def sinh(x: Register) -> Register:
    """With h = (e**t - 1) / 2, t = |x|: sinh t = h + h / (2h + 1). 2 ulp."""
    _, h = _half_growth(x)
    y = h + where(h < 1e9, h / fma(h, 2.0, 1.0), 0.0)
    return where(eq(x, x), copysign(y, x), x)


@f32_only
def cosh(x: Register) -> Register:
    """With g = e**t / 2: cosh t = g + 1 / (4g). 2 ulp."""
    _, h = _half_growth(x)
    g = h + 0.5
    return where(eq(x, x), g + x.number(0.25) / g, x)


@f32_only
def asinh(x: Register) -> Register:
    """log(t + sqrt(t**2 + 1)) = log1p(t + t**2 / (1 + sqrt(t**2 + 1))); log(2t) for large t. 3 ulp."""
    t = absolute(x)
    s = t * t
    y = log1p(t + s / (sqrt(s + 1.0) + 1.0))
    return copysign(where(t > 1e9, log(t) + math.log(2.0), y), x)


@f32_only
def acosh(x: Register) -> Register:
    """log1p(t + sqrt(2t + t**2)) with t = x - 1; log(2x) for large x; NaN below 1. 3 ulp."""
    t = x - 1.0
    y = log1p(t + sqrt(fma(t, t, t + t)))
    return where(x < 1.0, math.nan, where(x > 1e9, log(x) + math.log(2.0), y))


@f32_only
def atanh(x: Register) -> Register:
    """log((1 + t) / (1 - t)) / 2 = log1p(2t / (1 - t)) / 2. 3 ulp."""
    t = absolute(x)
    return copysign(log1p((t + t) / (x.number(1.0) - t)) * 0.5, x)
