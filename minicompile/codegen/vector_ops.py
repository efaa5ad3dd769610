"""Arithmetic, comparison, selection: PyTorch's meaning of each, for every dtype.

Each function appends the instructions of one registry primitive (or a helper of one); arguments are
Registers of one dtype and width.  Float instructions carry no fast-math flags: NaN, infinities,
signed zeros and denormals come out exactly as IEEE says.  Integers wrap around.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from minicompile.codegen.numba_types import vector_function
from minicompile.codegen.register import (
    LANES,
    OPERATORS,
    Number,
    Register,
    element_type,
    is_half,
    is_real,
    together,
)
from minicompile.ir.types import DType, bool_, i32, i64, u8

Operand = Register | Number


def _define(key: Any, name: str, f: Callable[..., Register]) -> None:
    """Make f the meaning of a Python operator, on Registers and in Numba source."""
    OPERATORS[name] = f
    vector_function(key)(f)


def unsigned(dtype: DType) -> bool:
    return dtype is u8 or dtype is bool_


def _arithmetic(name: str, real: str, integer: str) -> Callable[..., Register]:
    """a OP b from the names of the two builder methods."""

    def f(a: Operand, b: Operand) -> Register:
        x, y = together(a, b)
        if is_half(x.dtype):
            raise TypeError(f"{x.dtype} does not compute; cast to f32 first")
        method = real if is_real(x.dtype) else integer
        return x.like(getattr(x.builder, method)(x.value, y.value))

    f.__name__ = name
    return f


def _comparison(symbol: str) -> Callable[..., Register]:
    """a OP b as bool. Ordered: false for NaN; `!=` is unordered: true for NaN."""

    def f(a: Operand, b: Operand) -> Register:
        x, y = together(a, b)
        if is_real(x.dtype):
            compare = x.builder.fcmp_unordered if symbol == "!=" else x.builder.fcmp_ordered
        else:
            compare = x.builder.icmp_unsigned if unsigned(x.dtype) else x.builder.icmp_signed
        return x.of(compare(symbol, x.value, y.value), bool_)

    return f


_define(operator.add, "add", _arithmetic("add", "fadd", "add"))
_define(operator.sub, "sub", _arithmetic("sub", "fsub", "sub"))
_define(operator.mul, "mul", _arithmetic("mul", "fmul", "mul"))
_define(operator.truediv, "div", _arithmetic("div", "fdiv", "sdiv"))
_define(operator.and_, "bitand", _arithmetic("bitand", "and_", "and_"))
_define(operator.or_, "bitor", _arithmetic("bitor", "or_", "or_"))
_define(operator.xor, "bitxor", _arithmetic("bitxor", "xor", "xor"))
_define(operator.lt, "lt", _comparison("<"))
_define(operator.le, "le", _comparison("<="))
_define(operator.gt, "gt", _comparison(">"))
_define(operator.ge, "ge", _comparison(">="))
_define(operator.eq, "eq", _comparison("=="))
_define(operator.ne, "ne", _comparison("!="))
eq, ne = OPERATORS["eq"], OPERATORS["ne"]


@vector_function()
def neg(x: Register) -> Register:
    b = x.builder
    return x.like(b.fneg(x.value) if is_real(x.dtype) else b.sub(x.number(0).value, x.value))


@vector_function()
def bitnot(x: Register) -> Register:
    return x.like(x.builder.not_(x.value))


_define(operator.neg, "neg", neg)
_define(operator.invert, "bitnot", bitnot)


@vector_function()
def fma(a: Operand, b: Operand, c: Operand) -> Register:
    """a * b + c, rounded once where the processor has such an instruction."""
    x, y, z = together(a, b, c)
    return x.intrinsic("fmuladd", y, z) if is_real(x.dtype) else x * y + z


@vector_function()
def where(condition: Register, a: Operand, b: Operand) -> Register:
    """a where the condition (bool) holds, else b."""
    x, y = together(a, b)
    lanes = max(condition.lanes, x.lanes)
    c, x, y = condition.splat(lanes), x.splat(lanes), y.splat(lanes)
    return x.like(x.builder.select(c.value, x.value, y.value))


def _extreme(real: str, symbol: str) -> Callable[..., Register]:
    """The larger or smaller one; llvm.maximum and llvm.minimum return NaN if either operand is."""

    def f(a: Operand, b: Operand) -> Register:
        x, y = together(a, b)
        if is_real(x.dtype):
            return x.intrinsic(real, y)
        return where(OPERATORS[symbol](x, y), x, y)

    f.__name__ = real
    return vector_function()(f)


maximum = _extreme("maximum", "gt")
minimum = _extreme("minimum", "lt")


@vector_function()
def isnan(x: Register) -> Register:
    return ne(x, x)


@vector_function()
def isinf(x: Register) -> Register:
    return eq(absolute(x), float("inf"))


def sign_mask(x: Register) -> Register:
    """The bits of a float as a signed integer: negative when the sign bit is set."""
    integer = i32 if x.dtype.bytes == 4 else i64
    return x.bits(element_type(integer), integer)


@vector_function()
def signbit(x: Register) -> Register:
    return sign_mask(x) < 0


@vector_function()
def absolute(x: Register) -> Register:
    """|x|; the most negative integer stays as it is."""
    if is_real(x.dtype):
        return x.intrinsic("fabs")
    return x if unsigned(x.dtype) else where(x < 0, -x, x)


@vector_function()
def copysign(a: Operand, b: Operand) -> Register:
    x, y = together(a, b)
    return x.intrinsic("copysign", y)


@vector_function()
def sign(x: Register) -> Register:
    """-1, 0 or 1: (0 < x) - (x < 0); 0 for NaN."""
    if x.dtype is bool_:
        return x
    above = where(x > 0, x.number(1), x.number(0))
    return above if unsigned(x.dtype) else above - where(x < 0, x.number(1), x.number(0))


def _rounding(name: str) -> Callable[[Register], Register]:
    def f(x: Register) -> Register:
        return x.intrinsic(name)

    f.__name__ = name
    return vector_function()(f)


sqrt = _rounding("sqrt")
floor = _rounding("floor")
ceil = _rounding("ceil")
trunc = _rounding("trunc")
roundeven = _rounding("roundeven")


@vector_function()
def rsqrt(x: Register) -> Register:
    """1 / sqrt(x), two correctly rounded steps, as PyTorch."""
    return x.number(1) / sqrt(x)


@vector_function()
def reciprocal(x: Register) -> Register:
    return x.number(1) / x


@vector_function()
def splat(x: Register) -> Register:
    """The scalar in all 16 lanes."""
    return x.splat(LANES)
