"""What the polynomial functions share: Horner's rule, clamping that keeps NaN, powers of two."""

from __future__ import annotations

import functools
from collections.abc import Callable

from llvmlite import ir as llvm

from minicompile.codegen.numba_types import vector_function
from minicompile.codegen.register import Register
from minicompile.codegen.vector_libm import per_lane
from minicompile.codegen.vector_ops import fma, where
from minicompile.ir.types import f32, i32

F = Callable[[Register], Register]
BITS, FLOAT = llvm.IntType(32), llvm.FloatType()

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = (
    0.693145751953125,
    1.4286068203094173e-06,
)  # the high part has 16 bits: n*HIGH is exact
SMALLEST_NORMAL = 2.0**-126


def f32_only(f: F) -> F:
    """The polynomial for f32; the C library for f64."""

    @functools.wraps(f)
    def both(x: Register) -> Register:
        return f(x) if x.dtype is f32 else per_lane(f.__name__, x)

    return vector_function()(both)


def polynomial(x: Register, *coefficients: float) -> Register:
    """Horner's rule, the highest power first."""
    result = x.number(coefficients[0])
    for c in coefficients[1:]:
        result = fma(result, x, c)
    return result


def at_least(x: Register, low: float) -> Register:
    """max(x, low), but NaN stays (one vmaxps)."""
    return where(x < low, low, x)


def at_most(x: Register, high: float) -> Register:
    return where(x > high, high, x)


def power_of_two(n: Register) -> Register:
    """2**n for an i32 n in -126 ... 127: n + 127 is the exponent field of a float."""
    field = n + 127
    shifted = field.like(field.builder.shl(field.value, field.number(23).value))
    return shifted.bits(FLOAT, f32)


def to_integer(x: Register) -> Register:
    """An integral float in the range of i32, as i32."""
    t = llvm.VectorType(BITS, x.lanes) if x.lanes > 1 else BITS
    return x.of(x.builder.fptosi(x.value, t), i32)


def frozen(x: Register, low: float, high: float) -> Register:
    """x between low and high, NaN replaced by low: safe to convert to an integer."""
    return where(x > low, at_most(x, high), low)


def scaled(y: Register, n: Register) -> Register:
    """y * 2**n for an integral float n in -150 ... 128, in two steps: neither factor overflows, and
    only the last product is rounded, so denormal results are right."""
    whole = to_integer(n)
    half = whole.like(whole.builder.ashr(whole.value, whole.number(1).value))
    return y * power_of_two(half) * power_of_two(whole - half)
