"""Polynomials for f32: exp, log, sin, tanh, erf and their kin, a vector in 10-30 instructions.

Every function follows one pattern: reduce the argument to a short interval by an exact law, evaluate a
polynomial there, undo the reduction.  The coefficients are our own minimax fits (see
tests/codegen/fit_polynomials.py); tests/codegen/test_math.py measures the errors stated here, in ulp
(units in the last place) of the correctly rounded result.  NaN, infinities, signed zeros and denormals
come out as in PyTorch.  f64, and functions without a polynomial, call the C library lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable

from minicompile.codegen.register import Register
from minicompile.codegen.vector_exp import erf, exp, exp2, expm1, tanh
from minicompile.codegen.vector_hyperbolic import acosh, asinh, atanh, cosh, sinh
from minicompile.codegen.vector_inverse import acos, asin, atan
from minicompile.codegen.vector_libm import LIBM
from minicompile.codegen.vector_log import log, log1p, log2, log10
from minicompile.codegen.vector_trig import cos, sin, tan

POLYNOMIALS: dict[str, Callable[[Register], Register]] = {
    f.__name__: f
    for f in (
        *(exp, exp2, expm1, erf, log, log2, log10, log1p, sin, cos, tan, asin, acos, atan),
        *(sinh, cosh, tanh, asinh, acosh, atanh),
    )
}
MATH: dict[str, Callable[..., Register]] = {**LIBM, **POLYNOMIALS}
