"""Elementwise primitives: one scalar expression per element.

Operands have equal shape and one dtype (`where` has a bool condition first); Python numbers among them
are constants of that dtype.  Half precision never computes here: composites cast to f32, compute and
cast back, so that there is one rounding, as in PyTorch's kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from minicompile.ir.types import DType, TensorType, bool_
from minicompile.ops.registry import Emitter, Kind, primitive


def _common(args: tuple[Any, ...]) -> TensorType:
    types = [a for a in args if isinstance(a, TensorType)]
    if not types:
        raise TypeError("needs at least one tensor")
    first = types[0].pure()
    for t in types[1:]:
        if t.pure() != first:
            raise TypeError(f"operands differ: {first} and {t}; cast or broadcast first")
    return first


def _same(*args: Any) -> TensorType:
    return _common(args)


def _predicate(*args: Any) -> TensorType:
    return _common(args).with_dtype(bool_)


def _where(cond: TensorType, *args: Any) -> TensorType:
    if not any(isinstance(a, TensorType) for a in args):
        raise TypeError("where needs at least one tensor besides the condition; use `full`")
    result = _common(args)
    if cond.dtype is not bool_ or cond.shape != result.shape:
        raise TypeError(f"the condition must be bool and of shape {result.shape}, not {cond}")
    return result


def _cast(x: TensorType, *, dtype: DType) -> TensorType:
    return x.pure().with_dtype(dtype)


def _with_constants(f: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """f with Python numbers made constants of the tensor operands' dtype."""

    def meaning(*args: Any) -> torch.Tensor:
        dtype = next(a.dtype for a in args if isinstance(a, torch.Tensor))
        return f(
            *(a if isinstance(a, torch.Tensor) else torch.tensor(a, dtype=dtype) for a in args)
        )

    return meaning


def _unary(name: str, meaning: Any, doc: str, flops: int = 1, domain: str = "f") -> Emitter:
    return primitive(name, Kind.ELEMENTWISE, _same, meaning, doc, flops=flops, domain=domain)


def _binary(
    name: str, meaning: Any, doc: str, infix: str = "", flops: int = 1, domain: str = "fiu"
) -> Emitter:
    constants = _with_constants(meaning)
    return primitive(
        name, Kind.ELEMENTWISE, _same, constants, doc, infix=infix, flops=flops, domain=domain
    )


def _compare(name: str, meaning: Any, infix: str) -> Emitter:
    doc = f"a {infix} b, as bool; false when a float operand is NaN (except !=)."
    constants = _with_constants(meaning)
    return primitive(name, Kind.ELEMENTWISE, _predicate, constants, doc, infix=infix, domain="fiub")


add = _binary("add", torch.add, "a + b; integers wrap around.", "+")
sub = _binary("sub", torch.sub, "a - b; integers wrap around.", "-")
mul = _binary("mul", torch.mul, "a * b; integers wrap around.", "*")
div = _binary("div", torch.true_divide, "a / b, floats only.", "/", flops=4, domain="f")
floor_div = _binary(
    "floor_div",
    torch.floor_divide,
    "floor(a / b), Python's //, integers only; the caller makes sure that b is not 0.",
    "//",
    flops=8,
    domain="iu",
)
trunc_div = _binary(
    "trunc_div",
    lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "a / b rounded towards zero, as in C, integers only; the caller makes sure that b is not 0.",
    flops=8,
    domain="iu",
)
remainder = _binary(
    "remainder",
    torch.remainder,
    "Python's %, integers only: the result has the sign of b; the caller makes sure that b is not 0.",
    "%",
    flops=8,
    domain="iu",
)
fmod = _binary("fmod", torch.fmod, "C's fmod and %: the result has the sign of a.", flops=8)
pow = _binary(
    "pow",
    torch.pow,
    "a ** b. Integers wrap around; a negative integer exponent gives 0, except for 1 and -1.",
    "**",
    flops=30,
)
maximum = _binary("maximum", torch.maximum, "The larger one; NaN if either is.", domain="fiub")
minimum = _binary("minimum", torch.minimum, "The smaller one; NaN if either is.", domain="fiub")
atan2 = _binary("atan2", torch.atan2, "The angle of (b, a), in radians.", flops=20, domain="f")
hypot = _binary("hypot", torch.hypot, "sqrt(a*a + b*b) without overflow.", flops=8, domain="f")
copysign = _binary("copysign", torch.copysign, "|a| with the sign of b.", domain="f")
nextafter = _binary("nextafter", torch.nextafter, "The next float after a towards b.", domain="f")

eq = _compare("eq", torch.eq, "==")
ne = _compare("ne", torch.ne, "!=")
lt = _compare("lt", torch.lt, "<")
le = _compare("le", torch.le, "<=")
gt = _compare("gt", torch.gt, ">")
ge = _compare("ge", torch.ge, ">=")

bitand = _binary("bitand", torch.bitwise_and, "Bitwise and; on bool, logical.", "&", domain="iub")
bitor = _binary("bitor", torch.bitwise_or, "Bitwise or; on bool, logical.", "|", domain="iub")
bitxor = _binary("bitxor", torch.bitwise_xor, "Bitwise xor; on bool, logical.", "^", domain="iub")
bitnot = _unary("bitnot", torch.bitwise_not, "Bitwise not; on bool, logical.", domain="iub")
shl = _binary(
    "shl",
    torch.bitwise_left_shift,
    "a << b; 0 when b is negative or not below the width.",
    "<<",
    domain="iu",
)
shr = _binary(
    "shr",
    torch.bitwise_right_shift,
    "a >> b, arithmetic; b outside 0 ... width-1 fills with the sign.",
    ">>",
    domain="iu",
)

neg = _unary("neg", torch.neg, "-a.", domain="fiu")
abs = _unary("abs", torch.abs, "|a|.", domain="fiu")
sign = _unary("sign", torch.sign, "-1, 0 or 1; 0 for NaN, as PyTorch.", domain="fiu")
sqrt = _unary("sqrt", torch.sqrt, "Square root, correctly rounded.", flops=6)
rsqrt = _unary("rsqrt", torch.rsqrt, "1 / sqrt(a).", flops=8)
reciprocal = _unary("reciprocal", torch.reciprocal, "1 / a.", flops=4)
floor = _unary("floor", torch.floor, "The largest integer <= a, as a float.")
ceil = _unary("ceil", torch.ceil, "The smallest integer >= a, as a float.")
trunc = _unary("trunc", torch.trunc, "a rounded towards zero.")
round = _unary("round", torch.round, "a rounded to the nearest integer, ties to even.")
exp = _unary("exp", torch.exp, "e**a.", flops=10)
exp2 = _unary("exp2", torch.exp2, "2**a.", flops=10)
expm1 = _unary("expm1", torch.expm1, "e**a - 1, accurate near 0.", flops=15)
log = _unary("log", torch.log, "Natural logarithm.", flops=12)
log2 = _unary("log2", torch.log2, "Logarithm to base 2.", flops=12)
log10 = _unary("log10", torch.log10, "Logarithm to base 10.", flops=12)
log1p = _unary("log1p", torch.log1p, "log(1 + a), accurate near 0.", flops=15)
sin = _unary("sin", torch.sin, "Sine; a in radians.", flops=12)
cos = _unary("cos", torch.cos, "Cosine; a in radians.", flops=12)
tan = _unary("tan", torch.tan, "Tangent; a in radians.", flops=20)
asin = _unary("asin", torch.asin, "Arc sine, in radians.", flops=20)
acos = _unary("acos", torch.acos, "Arc cosine, in radians.", flops=20)
atan = _unary("atan", torch.atan, "Arc tangent, in radians.", flops=20)
sinh = _unary("sinh", torch.sinh, "Hyperbolic sine.", flops=20)
cosh = _unary("cosh", torch.cosh, "Hyperbolic cosine.", flops=20)
tanh = _unary("tanh", torch.tanh, "Hyperbolic tangent.", flops=15)
asinh = _unary("asinh", torch.asinh, "Inverse hyperbolic sine.", flops=25)
acosh = _unary("acosh", torch.acosh, "Inverse hyperbolic cosine.", flops=25)
atanh = _unary("atanh", torch.atanh, "Inverse hyperbolic tangent.", flops=25)
erf = _unary("erf", torch.erf, "The error function.", flops=18)
erfc = _unary("erfc", torch.erfc, "1 - erf(a), accurate for large a.", flops=25)
lgamma = _unary("lgamma", torch.lgamma, "log |gamma(a)|.", flops=60)

isnan = primitive("isnan", Kind.ELEMENTWISE, _predicate, torch.isnan, "Is a NaN?", domain="f")
isinf = primitive("isinf", Kind.ELEMENTWISE, _predicate, torch.isinf, "Is a infinite?", domain="f")
signbit = primitive(
    "signbit", Kind.ELEMENTWISE, _predicate, torch.signbit, "Is the sign bit set (-0.0, too)?",
    domain="f",
)  # fmt: skip


def _where_meaning(cond: torch.Tensor, a: Any, b: Any) -> torch.Tensor:
    return _with_constants(lambda x, y: torch.where(cond, x, y))(a, b)


where = primitive(
    "where", Kind.ELEMENTWISE, _where, _where_meaning, "a where cond (bool) holds, else b."
)
cast = primitive(
    "cast",
    Kind.ELEMENTWISE,
    _cast,
    lambda x, dtype: x.to(dtype.torch),
    "The value in another dtype: floats round to nearest even, float -> int truncates, x != 0 for bool.",
)
