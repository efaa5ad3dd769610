"""Inverse trigonometric functions for f32: atan, asin, acos (see vector_math)."""

from __future__ import annotations

import math

from minicompile.codegen.register import Register
from minicompile.codegen.vector_ops import absolute, copysign, fma, sqrt, where
from minicompile.codegen.vector_polynomial import f32_only, polynomial

# pi/2 as a sum of two floats; PI_HALF alone is wrong by a third of an ulp
PI_HALF, PI_HALF_LOW = 1.57079637050628662109375, -4.37113900018624283e-8


@f32_only
def atan(x: Register) -> Register:
    """atan z = z + z**3 P(z**2) on 0 ... 1; atan t = pi/2 - atan(1/t) above. 2 ulp."""
    t = absolute(x)
    large = t > 1.0
    z = where(large, x.number(1.0) / t, t)
    s = z * z
    p = polynomial(
        s, 0.00292035984, -0.0163665209, 0.0432094261, -0.0755199343, 0.106658928, -0.142110243,
        0.199937686, -0.333331525,
    )  # fmt: skip
    y = fma(s * z, p, z)
    return copysign(where(large, x.number(PI_HALF) - y + PI_HALF_LOW, y), x)


def _asin_small(z: Register) -> Register:
    """asin z for abs(z) <= 1/2."""
    s = z * z
    p = polynomial(s, 0.0421583056, 0.0241847783, 0.0454691499, 0.0749530941, 0.166667521)
    return fma(s * z, p, z)


@f32_only
def asin(x: Register) -> Register:
    """asin t = pi/2 - 2 asin(sqrt((1 - t) / 2)) above 1/2; NaN outside of -1 ... 1. 2 ulp."""
    t = absolute(x)
    large = t > 0.5
    z = where(large, sqrt(fma(t, -0.5, 0.5)), t)
    y = _asin_small(z)
    return copysign(where(large, x.number(PI_HALF) - (y + y) + PI_HALF_LOW, y), x)


@f32_only
def acos(x: Register) -> Register:
    """pi/2 - asin x in the middle; 2 asin(sqrt((1 - |x|) / 2)), or pi minus it, outside. 2 ulp."""
    t = absolute(x)
    large = t > 0.5
    z = where(large, sqrt(fma(t, -0.5, 0.5)), x)
    y = _asin_small(z)
    outer = where(x < 0.0, x.number(math.pi) - (y + y) + 2 * PI_HALF_LOW, y + y)
    return where(large, outer, x.number(PI_HALF) - (y - PI_HALF_LOW))
