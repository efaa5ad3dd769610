"""Sine and cosine for f32 (see vector_math)."""

from __future__ import annotations

import math

from llvmlite import ir as llvm

from minicompile.codegen.register import Register, call_intrinsic
from minicompile.codegen.vector_libm import per_lane
from minicompile.codegen.vector_ops import absolute, eq, fma, roundeven, where
from minicompile.codegen.vector_polynomial import (
    BITS,
    FLOAT,
    f32_only,
    frozen,
    polynomial,
    to_integer,
)
from minicompile.ir.types import f32, i32

# pi in four parts of few bits each, so that n * part is exact for the n that occur
PI = (3.140625, 0.0009670257568359375, 6.2771141529083251953e-07, 1.2154201256553420762e-10)
LARGE = 1e5  # from here on the reduction loses accuracy


def _sine(r: Register) -> Register:
    """sin(r) for abs(r) <= pi/2."""
    s = r * r
    q = polynomial(s, 2.60608158e-06, -0.000198097739, 0.00833306927, -0.166666597)
    return fma(s * r, q, r)


def _less_pi(x: Register, n: Register) -> Register:
    """x - n pi."""
    for part in PI:
        x = fma(n, -part, x)
    return x


def _alternating(y: Register, n: Register) -> Register:
    """(-1)**n y: the lowest bit of n goes to the sign bit."""
    whole = to_integer(frozen(n, -1e6, 1e6))
    sign = whole.like(whole.builder.shl(whole.value, whole.number(31).value))
    return (y.bits(BITS, i32) ^ sign).bits(FLOAT, f32)


def _by_libm_where_large(name: str, x: Register, y: Register) -> Register:
    """y, but if any lane of x is large or not finite, all lanes from the C library (a branch)."""
    b = x.builder
    large = ~(absolute(x) < LARGE)
    some = large.value
    if x.lanes > 1:
        some = call_intrinsic(b, "vector.reduce.or", large.type, [large.value], llvm.IntType(1))
    before = b.block
    with b.if_then(some, likely=False):
        exact = where(large, per_lane(name, x), y)
        inside = b.block
    result = b.phi(x.type)
    result.add_incoming(y.value, before)
    result.add_incoming(exact.value, inside)
    return x.like(result)


def _sine_of(x: Register) -> Register:
    n = roundeven(x * (1 / math.pi))
    return _alternating(_sine(_less_pi(x, n)), n)


def _cosine_of(x: Register) -> Register:
    m = roundeven(fma(x, 1 / math.pi, -0.5))
    return -_alternating(_sine(_less_pi(x, m + 0.5)), m)


@f32_only
def sin(x: Register) -> Register:
    """sin x = (-1)**n sin(x - n pi), n = round(x / pi). 2.5 ulp; above 1e5 by the C library."""
    return _by_libm_where_large("sin", x, where(eq(x, 0.0), x, _sine_of(x)))


@f32_only
def cos(x: Register) -> Register:
    """cos x = -(-1)**m sin(x - (m + 1/2) pi), m = round(x / pi - 1/2). 2.5 ulp; above 1e5 by libm."""
    return _by_libm_where_large("cos", x, _cosine_of(x))


@f32_only
def tan(x: Register) -> Register:
    """sin x / cos x, each with its own reduction. 4 ulp; above 1e5 by the C library."""
    return _by_libm_where_large("tan", x, where(eq(x, 0.0), x, _sine_of(x) / _cosine_of(x)))
