"""Logarithms for f32: log, log2, log10, log1p (see vector_math)."""

from __future__ import annotations

import math

from minicompile.codegen.register import Register
from minicompile.codegen.vector_ops import eq, fma, where
from minicompile.codegen.vector_polynomial import (
    BITS,
    FLOAT,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    SMALLEST_NORMAL,
    f32_only,
    polynomial,
)
from minicompile.ir.types import f32, i32


def _split(x: Register) -> tuple[Register, Register]:
    """x = 2**e (1 + f) with 1 + f in sqrt(1/2) ... sqrt(2), for positive x, denormal or not."""
    tiny = x < SMALLEST_NORMAL
    bits = where(tiny, x * 2.0**23, x).bits(BITS, i32)
    b = x.builder
    # adding (1.0 - sqrt(1/2)) to the bits carries into the exponent where the fraction is above sqrt(2)
    shifted = bits + (0x3F800000 - 0x3F3504F3)
    exponent = shifted.like(b.ashr(shifted.value, shifted.number(23).value)) - 127
    fraction = (shifted & 0x007FFFFF) + 0x3F3504F3
    real = x.of(b.sitofp(exponent.value, x.type), f32)
    return where(tiny, real - 23.0, real), fraction.bits(FLOAT, f32) - 1.0


def _log_tail(f: Register) -> Register:
    """log(1 + f) - f = -f**2/2 + f**3 Q(f)."""
    q = polynomial(
        f, 0.0674971491, -0.116708957, 0.118837424, -0.124061145, 0.142203212, -0.166679934,
        0.20002073, -0.250000089, 0.333333135,
    )  # fmt: skip
    square = f * f
    return fma(square * f, q, square * -0.5)


def _edges(x: Register, y: Register) -> Register:
    """The logarithm y of x, but -inf of 0, inf of inf, NaN of negative numbers."""
    y = where(eq(x, math.inf), math.inf, where(eq(x, 0.0), -math.inf, y))
    return where((x < 0.0) | ~eq(x, x), math.nan, y)


@f32_only
def log(x: Register) -> Register:
    """log x = e ln(2) + log(1 + f). 1 ulp."""
    e, f = _split(x)
    return _edges(x, fma(e, LN2_HIGH, fma(e, LN2_LOW, _log_tail(f)) + f))


@f32_only
def log2(x: Register) -> Register:
    """e + log(1 + f) (1 + (log2(e) - 1)): the small factor is added last but one. 2 ulp."""
    e, f = _split(x)
    tail = _log_tail(f)
    small = LOG2_E - 1.0
    return _edges(x, fma(tail, small, f * small) + tail + f + e)


@f32_only
def log10(x: Register) -> Register:
    """(e ln(2) + log(1 + f)) / ln(10), each factor in a high and a low part. 2 ulp."""
    e, f = _split(x)
    tail = _log_tail(f)
    y = fma(
        e,
        2.48745663981195213739e-4,
        fma(tail, 7.00731903251827651129e-4, f * 7.00731903251827651129e-4),
    )
    y = y + tail * 4.3359375e-1
    return _edges(x, fma(f, 4.3359375e-1, y) + e * 3.0078125e-1)


@f32_only
def log1p(x: Register) -> Register:
    """log(1 + x) = log u + (x - (u - 1)) / u, where u is 1 + x rounded. 2 ulp."""
    u = x + 1.0
    e, f = _split(u)
    lost = (x - (u - 1.0)) / u
    y = fma(e, LN2_HIGH, fma(e, LN2_LOW, _log_tail(f) + lost) + f)
    y = _edges(u, y)
    return where(eq(x, 0.0) | eq(x, math.inf), x, y)
