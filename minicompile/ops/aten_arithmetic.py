"""Arithmetic of ATen: sums, products, quotients, remainders and powers, with exact promotion.

Source of the semantics: aten/src/ATen/native/cpu/BinaryOpsKernel.cpp, PowKernel.cpp, LerpKernel.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicompile.errors import NotNative
from minicompile.ir.types import bool_, f16
from minicompile.ops import elementwise as el
from minicompile.ops.build import Handle
from minicompile.ops.promote import (
    Operand,
    arithmetic,
    common_dtype,
    floating,
    like,
    number,
    rounded,
    tensors,
)
from minicompile.ops.registry import Emitter, composite, sample
from minicompile.ops.samples import bools, floats, ints

PAIR = sample(floats(3, 4), floats(4))
WITH_NUMBER = [sample(floats(3, 4), 2.5), sample(ints(3, 4), 3), sample(ints(5), 0.5)]


@composite(
    "add.Tensor",
    "add.Scalar",
    samples=[PAIR, *WITH_NUMBER, sample(floats(3), ints(3), alpha=2), sample(bools(3), bools(3))],
)
def add(self: Operand, other: Operand, alpha: bool | int | float = 1) -> Handle:
    """self + alpha * other; on bools, self or (alpha and other)."""
    dtype = common_dtype(self, other)
    if dtype is bool_:
        return arithmetic(lambda a, b: a | (b & bool(alpha)), self, other)
    scale = rounded(alpha, dtype)
    return arithmetic(lambda a, b: a + times(b, scale), self, other)


@composite(
    "sub.Tensor", "sub.Scalar", samples=[PAIR, *WITH_NUMBER, sample(ints(3), floats(3), alpha=2)]
)
def sub(self: Operand, other: Operand, alpha: bool | int | float = 1) -> Handle:
    """self - alpha * other."""
    scale = rounded(alpha, common_dtype(self, other))
    return arithmetic(lambda a, b: a - times(b, scale), self, other)


@composite("rsub.Tensor", "rsub.Scalar", samples=[PAIR, *WITH_NUMBER])
def rsub(self: Operand, other: Operand, alpha: bool | int | float = 1) -> Handle:
    """other - alpha * self."""
    return sub(other, self, alpha)


@composite("mul.Tensor", "mul.Scalar", samples=[PAIR, *WITH_NUMBER, sample(bools(3), bools(3))])
def mul(self: Operand, other: Operand) -> Handle:
    """self * other; on bools, and."""
    if common_dtype(self, other) is bool_:
        return arithmetic(lambda a, b: a & b, self, other)
    return arithmetic(lambda a, b: a * b, self, other, exact=True)


@composite("div.Tensor", "div.Scalar", samples=[PAIR, *WITH_NUMBER, sample(ints(3), 0)])
def div(self: Operand, other: Operand) -> Handle:
    """self / other as floats: integers become the default float dtype first."""
    return floating(lambda a, b: a / b, self, other, exact=True)


@composite(
    "div.Tensor_mode",
    "div.Scalar_mode",
    samples=[
        sample(floats(3, 4), floats(4), rounding_mode=mode) for mode in (None, "floor", "trunc")
    ]
    + [sample(ints(9), -3, rounding_mode=mode) for mode in (None, "floor", "trunc")],
)
def div_mode(self: Operand, other: Operand, rounding_mode: str | None = None) -> Handle:
    """self / other, rounded "floor" or "trunc"; None is true division."""
    if rounding_mode is None:
        return div(self, other)
    if rounding_mode == "floor":
        return floor_divide(self, other)
    if common_dtype(self, other).is_float:  # half floats round the quotient first
        return arithmetic(el.trunc, div(self, other))
    return _integer_division(el.trunc_div, self, other)


@composite(
    "floor_divide", "floor_divide.Scalar", samples=[PAIR, sample(ints(9), 4), sample(ints(9), 2.0)]
)
def floor_divide(self: Operand, other: Operand) -> Handle:
    """Python's //: self / other rounded down."""
    if common_dtype(self, other).is_float:
        return arithmetic(float_floor_divide, *tensors(self, other))
    return _integer_division(el.floor_div, self, other)


def float_floor_divide(a: Handle, b: Handle) -> Handle:
    """floor(a / b) by way of the exact remainder, so that a rounded quotient cannot mislead it.

    a / 0 stays inf or nan; a zero result has the sign of a / b. Source: c10::div_floor_floating.
    """
    rest = el.fmod(a, b)
    whole = (a - rest) / b
    whole = el.where(_misses(rest, b), whole - 1.0, whole)
    down = el.floor(whole)
    down = el.where(whole - down > 0.5, down + 1.0, down)
    down = el.where(el.ne(whole, 0.0), down, el.copysign(el.mul(whole, 0.0), a / b))
    return el.where(el.eq(b, 0.0), a / b, down)


def _misses(rest: Handle, b: Handle) -> Handle:
    """Does C's remainder have the wrong sign for Python's: not zero, and other than b's?"""
    return el.ne(rest, 0.0) & el.ne(rest < 0.0, b < 0.0)


@composite(
    "remainder.Tensor",
    "remainder.Scalar",
    "remainder.Scalar_Tensor",
    samples=[PAIR, sample(ints(9), -3), sample(floats(9), -1.5), sample(5, floats(4))],
)
def remainder(self: Operand, other: Operand) -> Handle:
    """Python's %: the result has the sign of other."""
    if not common_dtype(self, other).is_float:
        return _integer_division(el.remainder, self, other)

    def formula(a: Handle, b: Handle) -> Handle:
        rest = el.fmod(a, b)
        return el.where(_misses(rest, b), rest + b, rest)

    return arithmetic(formula, *tensors(self, other))


@composite("fmod.Tensor", "fmod.Scalar", samples=[PAIR, sample(ints(9), -3), sample(floats(9), 2)])
def fmod(self: Operand, other: Operand) -> Handle:
    """C's remainder: the result has the sign of self."""
    if common_dtype(self, other).is_float:
        return arithmetic(el.fmod, self, other)
    return _integer_division(el.fmod, self, other)


def _integer_division(f: Emitter, a: Operand, b: Operand) -> Handle:
    """f for a constant divisor that is not 0; by a tensor, eager may raise ZeroDivisionError."""
    if isinstance(b, Handle) or b == 0:
        raise NotNative("integer division by a tensor or by zero: PyTorch checks for zeros")
    return arithmetic(f, a, b)


@composite(
    "pow.Tensor_Scalar",
    samples=[sample(floats(9, low=0.1, high=3), p) for p in (2, 3, 0.5, -0.5, -1, -2, 0, 1, 2.5)]
    + [sample(ints(9), p) for p in (0, 1, 2, 3, 4, 0.5)],
)
def pow_number(self: Handle, exponent: bool | int | float) -> Handle:
    """self ** exponent; small exponents by products and roots, as eager's kernel does."""
    dtype = common_dtype(self, exponent)
    if not dtype.is_float:
        if exponent < 0:
            raise NotNative("PyTorch raises for integers to negative integer powers")
        return arithmetic(lambda x, p: integer_power(x, int(exponent)), self, exponent)
    if dtype is f16 and abs(exponent) == 0.5:  # eager has no special case of roots here
        return arithmetic(el.pow, self, exponent)
    return arithmetic(float_power, self, exponent)


def integer_power(x: Handle, p: int) -> Handle:
    """x ** p for 0 <= p; integers wrap around."""
    if p == 0:
        return like(x, 1)
    return x if p == 1 else x * x if p == 2 else x * x * x if p == 3 else el.pow(x, p)


def float_power(x: Handle, p: float) -> Handle:
    """x ** p. NaN ** 0 is 1, and (-inf) ** 0.5 is NaN, as in eager's special cases."""
    if p == 0.0:
        return like(x, 1.0)
    special: dict[float, Callable[[], Handle]] = {
        1.0: lambda: x,
        2.0: lambda: x * x,
        3.0: lambda: x * x * x,
        0.5: lambda: el.sqrt(x),
        -0.5: lambda: el.rsqrt(x),
        -1.0: lambda: 1.0 / x,
        -2.0: lambda: 1.0 / (x * x),
    }
    return special.get(p, lambda: el.pow(x, p))()


@composite(
    "pow.Tensor_Tensor",
    samples=[sample(floats(3, 4, low=0.1, high=3), floats(4)), sample(ints(9), ints(9))],
)
def pow_tensor(self: Operand, exponent: Operand) -> Handle:
    """self ** exponent, element by element."""
    return arithmetic(el.pow, self, exponent)


@composite("pow.Scalar", samples=[sample(2, floats(4)), sample(1, floats(4)), sample(2, ints(4))])
def pow_of_number(self: bool | int | float, exponent: Handle) -> Handle:
    """A number to powers; 1 to any power, NaN too, is 1."""
    if self == 1:
        return arithmetic(lambda base, p: like(p, 1), self, exponent)
    return arithmetic(el.pow, self, exponent)


TRIPLE = sample(floats(3, 4), floats(4), floats(3, 1, low=0.5, high=2))


@composite("addcmul", samples=[TRIPLE, sample(floats(4), floats(4), ints(4), value=0.5)])
def addcmul(
    self: Handle, tensor1: Handle, tensor2: Handle, value: bool | int | float = 1
) -> Handle:
    """self + value * tensor1 * tensor2."""
    scale = number(value, common_dtype(self, tensor1, tensor2))
    return arithmetic(lambda x, a, b: x + times(a, scale) * b, self, tensor1, tensor2)


@composite("addcdiv", samples=[TRIPLE, sample(floats(3), floats(3), floats(3), value=-2)])
def addcdiv(
    self: Handle, tensor1: Handle, tensor2: Handle, value: bool | int | float = 1
) -> Handle:
    """self + value * tensor1 / tensor2, floats only."""
    scale = number(value, common_dtype(self, tensor1, tensor2))
    return arithmetic(lambda x, a, b: x + times(a, scale) / b, self, tensor1, tensor2)


@composite(
    "lerp.Scalar", "lerp.Tensor",
    samples=[sample(floats(4), floats(4), 0.3), sample(floats(4), floats(4), 0.8), TRIPLE],
)  # fmt: skip
def lerp(self: Handle, end: Handle, weight: Operand) -> Handle:
    """self + weight * (end - self), from the nearer end, so that weight 1 gives exactly end.

    Source: aten/src/ATen/native/Lerp.h.
    """

    def formula(a: Handle, b: Handle, w: Any) -> Handle:
        near: Handle = a + w * (b - a)
        far: Handle = b - (b - a) * (1.0 - w)
        if isinstance(w, Handle):
            return el.where(el.abs(w) < 0.5, near, far)
        return near if abs(w) < 0.5 else far

    return arithmetic(formula, self, end, weight, dtype=common_dtype(self, end), exact=True)


def times(x: Any, scale: bool | int | float) -> Any:
    """x * scale; x itself for 1, so that alpha=1 leaves no trace."""
    return x if scale == 1 else x * scale
