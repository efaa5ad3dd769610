"""Division with remainder, shifts and integer powers: where processors differ from PyTorch.

The x86 division instruction stops the program for x / 0 and for the most negative number / -1.
Neither reaches it here: those lanes divide by 1, and their result is selected afterwards.
"""

from __future__ import annotations

import operator

from llvmlite import ir as llvm
from numba.core import cgutils

from minicompile.codegen.numba_types import vector_function
from minicompile.codegen.register import (
    OPERATORS,
    Register,
    call_intrinsic,
    is_real,
    together,
)
from minicompile.codegen.vector_ops import (
    Operand,
    copysign,
    eq,
    floor,
    ne,
    trunc,
    unsigned,
    where,
)


def _quotient(x: Register, y: Register) -> Register:
    """Integer x / y towards zero; 0 where y is 0; wraps for the most negative x / -1."""
    b = x.builder
    if unsigned(x.dtype):
        safe = where(eq(y, 0), 1, y)
        return where(eq(y, 0), 0, x.like(b.udiv(x.value, safe.value)))
    safe = where(eq(y, 0) | eq(y, -1), 1, y)
    quotient = x.like(b.sdiv(x.value, safe.value))
    return where(eq(y, 0), 0, where(eq(y, -1), -x, quotient))


def _rest(x: Register, y: Register) -> Register:
    """x - y * (x / y), with the sign of x: C's %. 0 where y is 0."""
    if is_real(x.dtype):
        return x.like(x.builder.frem(x.value, y.value))
    return where(eq(y, 0), 0, x - _quotient(x, y) * y)


def _signs_differ(x: Register, y: Register) -> Register:
    return (x < 0) ^ (y < 0) if not unsigned(x.dtype) else x.number(False, eq(x, x).dtype)


@vector_function()
def trunc_div(a: Operand, b: Operand) -> Register:
    x, y = together(a, b)
    return trunc(x / y) if is_real(x.dtype) else _quotient(x, y)


@vector_function()
def fmod(a: Operand, b: Operand) -> Register:
    return _rest(*together(a, b))


@vector_function(operator.mod)
def remainder(a: Operand, b: Operand) -> Register:
    """Python's %: C's rest r, plus b where r is not 0 and has the other sign."""
    x, y = together(a, b)
    r = _rest(x, y)
    return where(ne(r, 0) & _signs_differ(r, y), r + y, r)


@vector_function(operator.floordiv)
def floor_div(a: Operand, b: Operand) -> Register:
    x, y = together(a, b)
    if is_real(x.dtype):
        return _floor_div_real(x, y)
    q, r = _quotient(x, y), _rest(x, y)
    return where(ne(r, 0) & _signs_differ(x, y), q - 1, q)


def _floor_div_real(x: Register, y: Register) -> Register:
    """floor(x / y) without the rounding error of the division, as CPython's float_floor_div.

    Source: c10/util/BFloat16-math.h's div_floor_floating, after CPython's Objects/floatobject.c.
    """
    r = _rest(x, y)
    q = (x - r) / y
    q = where(ne(r, 0) & _signs_differ(r, y), q - 1, q)
    whole = floor(q)
    whole = where((q - whole) > 0.5, whole + 1, whole)
    whole = where(eq(q, 0), copysign(x.number(0), x / y), whole)
    return where(eq(y, 0), x / y, whole)


@vector_function(operator.lshift)
def shl(a: Operand, b: Operand) -> Register:
    """a << b; 0 when b is negative or not less than the number of bits."""
    x, y = together(a, b)
    outside = _outside(y, x.dtype.bytes * 8)
    shifted = x.like(x.builder.shl(x.value, where(outside, 0, y).value))
    return where(outside, 0, shifted)


@vector_function(operator.rshift)
def shr(a: Operand, b: Operand) -> Register:
    """a >> b, arithmetic; b negative or too large shifts all bits out, leaving the sign."""
    x, y = together(a, b)
    outside = _outside(y, x.dtype.bytes * 8)
    if unsigned(x.dtype):
        return where(outside, 0, x.like(x.builder.lshr(x.value, where(outside, 0, y).value)))
    steps = where(outside, x.dtype.bytes * 8 - 1, y)
    return x.like(x.builder.ashr(x.value, steps.value))


def _outside(y: Register, bits: int) -> Register:
    too_large = OPERATORS["ge"](y, bits)
    return too_large if unsigned(y.dtype) else too_large | (y < 0)


def integer_power(x: Register, y: Register) -> Register:
    """x ** y by repeated squaring, wrapping around; y < 0 gives 0, but 1 or -1 for x = 1 or -1."""
    b = x.builder
    base, rest, result = (_variable(v) for v in (x, y, x.number(1)))

    def more(builder: llvm.IRBuilder) -> llvm.Value:
        return _any(ne(x.like(b.load(rest)), 0) & positive)

    positive = x.number(True, eq(x, x).dtype) if unsigned(x.dtype) else OPERATORS["gt"](y, 0)
    loop = b.append_basic_block("power")
    done = b.append_basic_block("power_done")
    b.cbranch(more(b), loop, done)
    with b.goto_block(loop):
        square, bits, product = (x.like(b.load(v)) for v in (base, rest, result))
        odd = ne(bits & 1, 0)
        b.store(where(odd, product * square, product).value, result)
        b.store((square * square).value, base)
        b.store(x.like(b.lshr(bits.value, x.number(1).value)).value, rest)
        b.cbranch(more(b), loop, done)
    b.position_at_end(done)
    return _negative_powers(x, y, x.like(b.load(result)))


def _negative_powers(x: Register, y: Register, power: Register) -> Register:
    if unsigned(x.dtype):
        return power
    sign = where(eq(y & 1, 0), 1, x)  # (-1) ** y, where x = -1
    inverse = where(eq(x, 1) | eq(x, -1), sign, 0)
    return where(y < 0, inverse, power)


def _variable(x: Register) -> llvm.Value:
    slot = cgutils.alloca_once(x.builder, x.type)
    x.builder.store(x.value, slot)
    return slot


def _any(mask: Register) -> llvm.Value:
    """Is any lane true? An i1."""
    if mask.lanes == 1:
        return mask.value
    b = mask.builder
    return call_intrinsic(b, "vector.reduce.or", mask.type, [mask.value], llvm.IntType(1))


OPERATORS.update(floor_div=floor_div, remainder=remainder, shl=shl, shr=shr)
