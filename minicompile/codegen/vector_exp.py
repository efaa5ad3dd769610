"""Exponentials and their kin, for f32: exp, exp2, expm1, tanh, erf (see vector_math)."""

from __future__ import annotations

import math

from minicompile.codegen.register import Register
from minicompile.codegen.vector_ops import absolute, copysign, eq, fma, roundeven, where
from minicompile.codegen.vector_polynomial import (
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    at_least,
    at_most,
    f32_only,
    frozen,
    polynomial,
    power_of_two,
    scaled,
    to_integer,
)


def _exp_polynomial(r: Register) -> Register:
    """e**r for abs(r) <= ln(2)/2."""
    q = polynomial(r, 0.00138210237, 0.00836867001, 0.0416682623, 0.166665211, 0.49999994)
    return fma(r * r, q, r) + 1.0


def _reduced(x: Register) -> tuple[Register, Register]:
    """x = n ln(2) + r with abs(r) <= ln(2)/2; ln(2) in two parts keeps r exact."""
    n = roundeven(x * LOG2_E)
    return n, fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))


@f32_only
def exp(x: Register) -> Register:
    """e**x = 2**n e**r. 1 ulp.

    Below -104 the result is 0, selected without computing it: an underflowing product takes a detour
    through microcode on Intel processors (13 times slower), which a softmax masked by -inf would pay.
    """
    low = x < -104.0
    n, r = _reduced(at_most(where(low, 0.0, x), 89.0))
    y = scaled(_exp_polynomial(r), frozen(n, -151.0, 128.0))
    return where(low, 0.0, y)


@f32_only
def exp2(x: Register) -> Register:
    """2**x = 2**n e**(r ln 2), n = round(x). 1 ulp."""
    low = x < -151.0
    safe = at_most(where(low, 0.0, x), 129.0)
    n = frozen(roundeven(safe), -151.0, 128.0)
    y = scaled(_exp_polynomial((safe - n) * math.log(2.0)), n)
    return where(low, 0.0, y)


def half_expm1(x: Register) -> Register:
    """(e**x - 1) / 2 = 2**(n-1) (e**r - 1) + (2**(n-1) - 1/2): right where e**x would overflow."""
    n, r = _reduced(x)
    q = polynomial(
        r, 0.000197624526, 0.00139323215, 0.00833354518, 0.0416664928, 0.166666657, 0.5
    )  # fmt: skip
    p = fma(r * r, q, r)
    s = power_of_two(to_integer(frozen(n, -64.0, 128.0)) - 1)
    return fma(s, p, s - 0.5)


def _expm1(x: Register) -> Register:
    y = half_expm1(x)
    return y + y


@f32_only
def expm1(x: Register) -> Register:
    """e**x - 1, accurate near 0. 2 ulp."""
    y = _expm1(at_most(at_least(x, -40.0), 89.0))
    return where(eq(x, 0.0), x, y)


@f32_only
def tanh(x: Register) -> Register:
    """With m = e**(-2|x|) - 1: tanh |x| = -m / (m + 2), free of overflow and cancellation. 2 ulp."""
    m = _expm1(at_least(absolute(x) * -2.0, -40.0))
    return copysign(-m / (m + 2.0), x)


@f32_only
def erf(x: Register) -> Register:
    """x + x P(x**2) up to 0.92, then 1 - e**(t Q(t)) with t = |x|, as erfc falls like e**(-t**2). 1 ulp."""
    t, s = absolute(x), x * x
    p = polynomial(
        s, -0.000600384199, 0.00499585923, -0.0267685819, 0.11281877, -0.376125008, 0.128379151
    )  # fmt: skip
    u = at_most(t, 4.0)
    q = polynomial(
        u, 0.000213985477, -0.00321497209, 0.0228900481, -0.105262011, -0.635718167, -1.12851441
    )  # fmt: skip
    n, r = _reduced(u * q)
    tail = fma(-_exp_polynomial(r), power_of_two(to_integer(frozen(n, -64.0, 1.0))), 1.0)
    return where(t < 0.92, fma(x, p, x), copysign(tail, x))
