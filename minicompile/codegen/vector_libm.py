"""Functions of the C library, one lane after the other: exact to under 1 ulp, and slow (5-20 ns a lane)."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir as llvm

from minicompile.codegen.numba_types import vector_function
from minicompile.codegen.register import Register, call_function, is_real, together
from minicompile.codegen.vector_ops import Operand
from minicompile.ir.types import f32


def per_lane(name: str, *operands: Operand) -> Register:
    """NAME (f64) or NAMEf (f32) of the C library, called for each lane. TypeError for other dtypes."""
    args = together(*operands)
    first = args[0]
    if not is_real(first.dtype):
        raise TypeError(f"{name} is not defined on {first.dtype}")
    symbol = name + "f" if first.dtype is f32 else name
    if first.lanes == 1:
        return first.like(_call(symbol, args))
    result = first.number(0.0)
    for n in range(first.lanes):
        result = _set_lane(result, n, _call(symbol, tuple(_lane(a, n) for a in args)))
    return result


def _call(symbol: str, args: tuple[Register, ...]) -> llvm.Value:
    values = [a.value for a in args]
    return call_function(args[0].builder, symbol, values[0].type, values, pure=True)


def _lane(v: Register, n: int) -> Register:
    number = llvm.Constant(llvm.IntType(32), n)
    return Register(v.builder, v.builder.extract_element(v.value, number), v.dtype, 1)


def _set_lane(v: Register, n: int, x: llvm.Value) -> Register:
    return v.like(v.builder.insert_element(v.value, x, llvm.Constant(llvm.IntType(32), n)))


def _function(name: str, arity: int) -> Callable[..., Register]:
    def one(x: Register) -> Register:
        return per_lane(name, x)

    def two(x: Operand, y: Operand) -> Register:
        return per_lane(name, x, y)

    f = one if arity == 1 else two
    f.__name__ = name
    return vector_function()(f)


UNARY = ("erfc", "lgamma")  # the other functions of one operand have polynomials: vector_math
BINARY = ("atan2", "hypot", "nextafter", "pow")
LIBM: dict[str, Callable[..., Register]] = {
    **{name: _function(name, 1) for name in UNARY},
    **{name: _function(name, 2) for name in BINARY},
}
