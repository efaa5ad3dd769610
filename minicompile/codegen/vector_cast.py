"""Conversions between dtypes, as PyTorch does them on x86.

real -> integer   truncates; NaN and numbers out of range give the most negative number ("integer
                  indefinite" of the cvtt instructions), so the result never depends on luck
any -> f16, bf16  through f32, rounded to nearest even (f64 rounds twice, as PyTorch does)
any -> bool       x != 0, so NaN is true
"""

from __future__ import annotations

from llvmlite import ir as llvm

from minicompile.codegen.numba_types import DTYPE_NAMES, vector_function
from minicompile.codegen.register import (
    CONVERT,
    Register,
    element_type,
    is_half,
    is_real,
    register_type,
)
from minicompile.codegen.vector_ops import isnan, ne, unsigned, where
from minicompile.ir.types import DTYPES, DType, bool_, f16, f32, f64, i32, i64, u8


def cast(x: Register, dtype: DType) -> Register:
    """x in another dtype."""
    if x.dtype is dtype:
        return x
    if is_half(x.dtype):
        return cast(_from_half(x), dtype)
    if is_half(dtype):
        return _to_half(cast(x, f32), dtype)
    if dtype is bool_:
        return ne(x, 0)
    if is_real(x.dtype):
        return _real_to_real(x, dtype) if is_real(dtype) else _real_to_integer(x, dtype)
    return _from_integer(x, dtype)


CONVERT["cast"] = cast


def _from_integer(x: Register, dtype: DType) -> Register:
    b, t = x.builder, register_type(element_type(dtype), x.lanes)
    if is_real(dtype):
        convert = b.uitofp if unsigned(x.dtype) else b.sitofp
    elif dtype.bytes > x.dtype.bytes or x.dtype is bool_:
        convert = b.zext if unsigned(x.dtype) else b.sext
    elif dtype.bytes == x.dtype.bytes:
        return x.of(x.value, dtype)  # i8 <-> u8
    else:
        convert = b.trunc
    return x.of(convert(x.value, t), dtype)


def _real_to_real(x: Register, dtype: DType) -> Register:
    b, t = x.builder, register_type(element_type(dtype), x.lanes)
    return x.of(b.fpext(x.value, t) if dtype is f64 else b.fptrunc(x.value, t), dtype)


def _real_to_integer(x: Register, dtype: DType) -> Register:
    """Through i32, as cvttss2si; u8 and i64 through i64. Then the upper bits are dropped."""
    middle = i64 if dtype in (i64, u8) else i32
    low = -(2.0 ** (middle.bytes * 8 - 1))
    inside = (x < -low) & ~(x < low)
    t = register_type(element_type(middle), x.lanes)
    whole = x.of(x.builder.fptosi(where(inside, x, 0.0).value, t), middle)
    return cast(where(inside, whole, int(low)), dtype)


_HALF, _WORD, _INT = llvm.HalfType(), llvm.IntType(16), llvm.IntType(32)


def _from_half(x: Register) -> Register:
    b = x.builder
    if x.dtype is f16:
        half = b.bitcast(x.value, register_type(_HALF, x.lanes))
        return x.of(b.fpext(half, register_type(llvm.FloatType(), x.lanes)), f32)
    wide = x.of(b.zext(x.value, register_type(_INT, x.lanes)), i32)
    return (wide_shift(wide, 16)).bits(llvm.FloatType(), f32)


def wide_shift(x: Register, n: int) -> Register:
    """x << n with a constant 0 <= n < bits."""
    return x.like(x.builder.shl(x.value, x.number(n).value))


def _to_half(x: Register, dtype: DType) -> Register:
    b, words = x.builder, register_type(_WORD, x.lanes)
    if dtype is f16:
        half = b.fptrunc(x.value, register_type(_HALF, x.lanes))
        return x.of(b.bitcast(half, words), f16)
    return x.of(b.trunc(_rounded_to_bf16(x).value, words), dtype)


def _rounded_to_bf16(x: Register) -> Register:
    """The upper half of the bits of x, as i32, after adding just under half (tie: to even)."""
    b, bits = x.builder, x.bits(_INT, i32)
    lowest_kept = bits.like(b.lshr(bits.value, bits.number(16).value)) & 1
    rounded = bits + lowest_kept + 0x7FFF
    upper = bits.like(b.lshr(rounded.value, bits.number(16).value))
    return where(isnan(x), 0x7FC0, upper)


def _named_cast(dtype: DType) -> object:
    """The function `f32`, `i64`, ... of generated code: cast(x, f32) is written f32(x)."""

    def convert(x: Register) -> Register:
        y = cast(x, dtype)
        return y.like(y.value)  # no longer weak

    convert.__name__ = dtype.name
    DTYPE_NAMES[convert] = dtype
    return vector_function()(convert)


NAMED_CASTS = {d.name: _named_cast(d) for d in DTYPES.values() if d.kind != "c"}
