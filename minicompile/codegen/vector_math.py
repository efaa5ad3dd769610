"""Polynomials for f32: exp, log, sin, tanh, erf and their kin, a vector in 10-30 instructions.

Every function follows one pattern: reduce the argument to a short interval by an exact law, evaluate a
polynomial there, undo the reduction.  The coefficients are our own minimax fits (see
tests/codegen/fit_polynomials.py); tests/codegen/test_math.py measures the errors stated here, in ulp
(units in the last place) of the correctly rounded result.  NaN, infinities, signed zeros and denormals
come out as in PyTorch.  f64, and functions without a polynomial, call the C library lane by lane.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from llvmlite import ir as llvm

from minicompile.codegen.numba_types import vector_function
from minicompile.codegen.register import Register, call_intrinsic
from minicompile.codegen.vector_libm import LIBM, per_lane
from minicompile.codegen.vector_ops import absolute, copysign, eq, fma, roundeven, where
from minicompile.ir.types import f32, i32

F = Callable[[Register], Register]
_BITS, _FLOAT = llvm.IntType(32), llvm.FloatType()

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


# ---------------------------------------------------------------------------------- exponentials


def power_of_two(n: Register) -> Register:
    """2**n for an i32 n in -126 ... 127: n + 127 is the exponent field of a float."""
    field = n + 127
    shifted = field.like(field.builder.shl(field.value, field.number(23).value))
    return shifted.bits(_FLOAT, f32)


def to_integer(x: Register) -> Register:
    """An integral float in the range of i32, as i32."""
    t = llvm.VectorType(_BITS, x.lanes) if x.lanes > 1 else _BITS
    return x.of(x.builder.fptosi(x.value, t), i32)


def _frozen(x: Register, low: float, high: float) -> Register:
    """x between low and high, NaN replaced by low: safe to convert to an integer."""
    return where(x > low, at_most(x, high), low)


def scaled(y: Register, n: Register) -> Register:
    """y * 2**n for an integral float n in -150 ... 128, in two steps: neither factor overflows, and
    only the last product is rounded, so denormal results are right."""
    whole = to_integer(n)
    half = whole.like(whole.builder.ashr(whole.value, whole.number(1).value))
    return y * power_of_two(half) * power_of_two(whole - half)


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
    y = scaled(_exp_polynomial(r), _frozen(n, -151.0, 128.0))
    return where(low, 0.0, y)


@f32_only
def exp2(x: Register) -> Register:
    """2**x = 2**n e**(r ln 2), n = round(x). 1 ulp."""
    low = x < -151.0
    safe = at_most(where(low, 0.0, x), 129.0)
    n = _frozen(roundeven(safe), -151.0, 128.0)
    y = scaled(_exp_polynomial((safe - n) * math.log(2.0)), n)
    return where(low, 0.0, y)


def _expm1(x: Register) -> Register:
    """e**x - 1 = 2 (2**(n-1) (e**r - 1) + (2**(n-1) - 1/2)): exact where 2**n alone would overflow."""
    n, r = _reduced(x)
    q = polynomial(
        r, 0.000197624526, 0.00139323215, 0.00833354518, 0.0416664928, 0.166666657, 0.5
    )  # fmt: skip
    p = fma(r * r, q, r)
    s = power_of_two(to_integer(_frozen(n, -64.0, 128.0)) - 1)
    y = fma(s, p, s - 0.5)
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
    tail = fma(-_exp_polynomial(r), power_of_two(to_integer(_frozen(n, -64.0, 1.0))), 1.0)
    return where(t < 0.92, fma(x, p, x), copysign(tail, x))


# ---------------------------------------------------------------------------------- logarithms


def _split(x: Register) -> tuple[Register, Register]:
    """x = 2**e (1 + f) with 1 + f in sqrt(1/2) ... sqrt(2), for positive x, denormal or not."""
    tiny = x < SMALLEST_NORMAL
    bits = where(tiny, x * 2.0**23, x).bits(_BITS, i32)
    b = x.builder
    # adding (1.0 - sqrt(1/2)) to the bits carries into the exponent where the fraction is above sqrt(2)
    shifted = bits + (0x3F800000 - 0x3F3504F3)
    exponent = shifted.like(b.ashr(shifted.value, shifted.number(23).value)) - 127
    fraction = (shifted & 0x007FFFFF) + 0x3F3504F3
    real = x.of(b.sitofp(exponent.value, x.type), f32)
    return where(tiny, real - 23.0, real), fraction.bits(_FLOAT, f32) - 1.0


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


# ---------------------------------------------------------------------------------- sine, cosine

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
    whole = to_integer(_frozen(n, -1e6, 1e6))
    sign = whole.like(whole.builder.shl(whole.value, whole.number(31).value))
    return (y.bits(_BITS, i32) ^ sign).bits(_FLOAT, f32)


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


@f32_only
def sin(x: Register) -> Register:
    """sin x = (-1)**n sin(x - n pi), n = round(x / pi). 2 ulp; above 1e5 by the C library."""
    n = roundeven(x * (1 / math.pi))
    y = _alternating(_sine(_less_pi(x, n)), n)
    return _by_libm_where_large("sin", x, where(eq(x, 0.0), x, y))


@f32_only
def cos(x: Register) -> Register:
    """cos x = -(-1)**m sin(x - (m + 1/2) pi), m = round(x / pi - 1/2). 2 ulp; above 1e5 by libm."""
    m = roundeven(fma(x, 1 / math.pi, -0.5))
    y = _alternating(_sine(_less_pi(x, m + 0.5)), m)
    return _by_libm_where_large("cos", x, -y)


POLYNOMIALS: dict[str, F] = {
    f.__name__: f for f in (exp, exp2, expm1, tanh, erf, log, log2, log10, log1p, sin, cos)
}
MATH: dict[str, Callable[..., Register]] = {**LIBM, **POLYNOMIALS}
