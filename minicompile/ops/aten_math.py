"""Functions of one and two numbers: exponentials, trigonometry, rounding, extremes, clamping.

Float functions take integers to the default float dtype; half floats compute in f32 and round once.
Source of the semantics: aten/src/ATen/native/cpu/UnaryOpsKernel.cpp and BinaryOpsKernel.cpp.
"""

from __future__ import annotations

import math

import torch

from minicompile.errors import NotNative
from minicompile.ir.types import bool_
from minicompile.ops import elementwise as el
from minicompile.ops.build import Handle
from minicompile.ops.promote import (
    Operand,
    arithmetic,
    cast,
    common_dtype,
    compute_dtype,
    floating,
    like,
)
from minicompile.ops.registry import PRIMITIVES, composite, sample
from minicompile.ops.samples import bools, floats, ints

ONE = [sample(floats(3, 4)), sample(ints(9))]
INSIDE = [sample(floats(9, low=-0.99, high=0.99)), sample(bools(3))]
POSITIVE = [sample(floats(3, 4, low=0.01, high=9)), sample(ints(9, low=1, high=9))]
ABOVE_ONE = [sample(floats(9, low=1, high=9)), sample(ints(9, low=1, high=9))]
PAIR = sample(floats(3, 4), floats(4))

# ATen's name is the primitive's, and the domain of its samples is here:
_FLOAT_FUNCTIONS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "sin", "cos", "tan", "atan"), ONE),
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "erf", "erfc"), ONE),
    **dict.fromkeys(("asin", "acos", "atanh"), INSIDE),
    **dict.fromkeys(("sqrt", "rsqrt", "reciprocal", "log", "log2", "log10", "log1p"), POSITIVE),
    **dict.fromkeys(("lgamma",), POSITIVE),
    **dict.fromkeys(("acosh",), ABOVE_ONE),
}


def _register_function(name: str) -> None:
    primitive = getattr(el, name)

    def body(self: Handle) -> Handle:
        return floating(primitive, self)

    body.__name__, body.__doc__ = name, PRIMITIVES[name].doc
    composite(name, samples=_FLOAT_FUNCTIONS[name])(body)


for _name in _FLOAT_FUNCTIONS:
    _register_function(_name)


def _register_rounding(name: str) -> None:
    primitive = getattr(el, name)

    def body(self: Handle) -> Handle:
        return arithmetic(primitive, self) if self.dtype.is_float else _integers(self)

    body.__name__ = name
    body.__doc__ = f"{PRIMITIVES[name].doc} Integers stay as they are."
    composite(name, samples=ONE)(body)


def _integers(x: Handle) -> Handle:
    if x.dtype.kind == "c" or x.dtype is bool_:
        raise NotNative(f"not defined on {x.dtype}")
    return x


for _name in ("floor", "ceil", "trunc", "round"):
    _register_rounding(_name)


@composite("round.decimals", samples=[sample(floats(5), decimals=d) for d in (0, 2, -1)])
def round_decimals(self: Handle, decimals: int) -> Handle:
    """self rounded to so many decimals, ties to even: by way of self * 10**decimals."""
    if not self.dtype.is_float:
        raise NotNative("integers with decimals are left to PyTorch")
    power = 10.0 ** abs(decimals)
    if decimals < 0:
        return arithmetic(lambda x: el.round(x / power) * power, self)
    return arithmetic(lambda x: el.round(x * power) / power if decimals else el.round(x), self)


@composite("neg", samples=ONE)
def neg(self: Handle) -> Handle:
    """-self; integers wrap around."""
    return arithmetic(el.neg, self)


@composite("abs", samples=ONE)
def absolute(self: Handle) -> Handle:
    """|self|; integers wrap around."""
    return self if self.dtype is bool_ else arithmetic(el.abs, self)


@composite("sign", "sgn", samples=ONE)
def sign(self: Handle) -> Handle:
    """-1, 0 or 1; 0 for NaN."""
    return self if self.dtype is bool_ else arithmetic(el.sign, self)


@composite("frac", samples=[sample(floats(3, 4))])
def frac(self: Handle) -> Handle:
    """self - trunc(self): the sign stays."""
    return arithmetic(lambda x: x - el.trunc(x), self)


@composite("deg2rad", samples=ONE)
def deg2rad(self: Handle) -> Handle:
    """Degrees to radians."""
    return floating(lambda x: x * (math.pi / 180.0), self)


@composite("rad2deg", samples=ONE)
def rad2deg(self: Handle) -> Handle:
    """Radians to degrees."""
    return floating(lambda x: x * (180.0 / math.pi), self)


@composite("sinc", samples=ONE)
def sinc(self: Handle) -> Handle:
    """sin(pi x) / (pi x), and 1 at 0."""

    def formula(x: Handle) -> Handle:
        angle = x * math.pi
        return el.where(el.eq(x, 0.0), 1.0, el.sin(angle) / angle)

    return floating(formula, self)


@composite("nan_to_num", samples=[sample(floats(4)), sample(floats(4), 1.0, 2.0, 3.0), ONE[1]])
def nan_to_num(
    self: Handle,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Handle:
    """NaN, inf and -inf replaced: by 0 and the largest and smallest finite number unless given."""
    if not self.dtype.is_float:
        return self if self.dtype is bool_ else _integers(self)
    info = torch.finfo(self.dtype.torch)
    high, low = info.max if posinf is None else posinf, info.min if neginf is None else neginf

    def formula(x: Handle) -> Handle:
        finite = el.where(el.isnan(x), nan or 0.0, x)
        finite = el.where(el.eq(x, math.inf), high, finite)
        return el.where(el.eq(x, -math.inf), low, finite)

    return arithmetic(formula, self)


# ------------------------------------------------------------------------------ two numbers


@composite("atan2", samples=[PAIR, sample(ints(9), ints(9))])
def atan2(self: Operand, other: Operand) -> Handle:
    """The angle of the point (other, self), in radians."""
    return floating(el.atan2, self, other)


@composite("hypot", samples=[PAIR])
def hypot(self: Handle, other: Handle) -> Handle:
    """sqrt(self**2 + other**2) without overflow."""
    return arithmetic(el.hypot, self, other)


@composite("copysign.Tensor", "copysign.Scalar", samples=[PAIR, sample(ints(9), -1.0)])
def copysign(self: Handle, other: Operand) -> Handle:
    """|self| with the sign of other, -0.0 included."""
    return floating(el.copysign, self, other)


@composite("nextafter", samples=[PAIR])
def nextafter(self: Handle, other: Handle) -> Handle:
    """The next float after self towards other."""
    dtype = common_dtype(self, other)
    if compute_dtype(dtype) is not dtype:
        raise NotNative("neighbours of half floats are not neighbours in f32")
    return arithmetic(el.nextafter, self, other)


@composite("heaviside", samples=[PAIR, sample(ints(9), ints(9))])
def heaviside(self: Handle, values: Handle) -> Handle:
    """0 below 0, `values` at 0, 1 above; 0 for NaN."""

    def formula(x: Handle, v: Handle) -> Handle:
        return el.where(el.eq(x, 0), v, cast(x > 0, x.dtype))

    return arithmetic(formula, self, values)


@composite("ldexp.Tensor", samples=[PAIR, sample(floats(9), ints(9))])
def ldexp(self: Handle, other: Handle) -> Handle:
    """self * 2**other; floats keep their dtype whatever integers the powers are."""
    powers = floating(el.exp2, other)
    if self.dtype.is_float and not other.dtype.is_float:
        powers = cast(powers, self.dtype)
    return arithmetic(lambda x, p: x * p, self, powers)


@composite("angle", samples=ONE)
def angle(self: Handle) -> Handle:
    """The angle of a number in the complex plane: pi below 0, else 0; NaN stays."""

    def formula(x: Handle) -> Handle:
        return el.where(el.isnan(x), x, el.where(x < 0.0, like(x, math.pi), 0.0))

    return floating(formula, self)
