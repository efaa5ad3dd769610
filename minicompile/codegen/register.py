"""What one value of generated code is while LLVM code is written for it.

A `Register` holds 1 or 16 numbers of one dtype and knows the LLVM builder; its operators append
instructions.  All functions of generated code (`vector_ops`, `vector_math`, ...) are ordinary Python
functions on Registers: calling one writes its instructions.  `numba_types` makes the same functions
callable from Numba source, so the text of a polynomial is written once, for every dtype and width.

    dtype   in registers    in memory          f16 and bf16 are storage: their bits, as i16;
    bool    i1              i8 (0 or 1)        `cast` converts them from and to f32
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from llvmlite import ir as llvm

from minicompile.ir.types import DType, bf16, bool_, f16, f32, f64, i64

LANES = 16  # of a vector: one AVX-512 register of f32, two AVX2 registers

_ELEMENTS: dict[str, llvm.Type] = {
    "f64": llvm.DoubleType(),
    "f32": llvm.FloatType(),
    "f16": llvm.IntType(16),
    "bf16": llvm.IntType(16),
    "i64": llvm.IntType(64),
    "i32": llvm.IntType(32),
    "i16": llvm.IntType(16),
    "i8": llvm.IntType(8),
    "u8": llvm.IntType(8),
    "bool": llvm.IntType(1),
}
Number = bool | int | float


def element_type(dtype: DType) -> llvm.Type:
    """The LLVM type of one element in a register. KeyError for complex dtypes."""
    return _ELEMENTS[dtype.name]


def memory_type(dtype: DType) -> llvm.Type:
    """The LLVM type of one element in memory."""
    return llvm.IntType(8) if dtype is bool_ else _ELEMENTS[dtype.name]


def register_type(element: llvm.Type, lanes: int) -> llvm.Type:
    return element if lanes == 1 else llvm.VectorType(element, lanes)


def is_real(dtype: DType) -> bool:
    """Does LLVM see floats (f32, f64)? f16 and bf16 are only bits here."""
    return dtype is f32 or dtype is f64


def is_half(dtype: DType) -> bool:
    return dtype is f16 or dtype is bf16


@dataclass(frozen=True, eq=False)
class Register:
    """`lanes` numbers of `dtype` (1 or LANES), as the LLVM value `value`.

    A `weak` register is a Python number of the source text: it takes the dtype of its partner.
    """

    builder: llvm.IRBuilder
    value: llvm.Value
    dtype: DType
    lanes: int
    weak: bool = False

    @property
    def type(self) -> llvm.Type:
        return register_type(element_type(self.dtype), self.lanes)

    def like(self, value: llvm.Value) -> Register:
        """Another value of the same dtype and lanes."""
        return Register(self.builder, value, self.dtype, self.lanes)

    def of(self, value: llvm.Value, dtype: DType) -> Register:
        """A value of another dtype, as many lanes."""
        return Register(self.builder, value, dtype, self.lanes)

    def number(self, x: Number, dtype: DType | None = None) -> Register:
        """The constant x in every lane, in this or the given dtype."""
        dtype = dtype or self.dtype
        return self.of(constant(dtype, self.lanes, x), dtype)

    def splat(self, lanes: int) -> Register:
        """The same number in all `lanes`."""
        if self.lanes == lanes:
            return self
        return Register(self.builder, splat(self.builder, self.value, lanes), self.dtype, lanes)

    def bits(self, to: llvm.Type, dtype: DType) -> Register:
        """The same bits as elements of type `to`."""
        return self.of(self.builder.bitcast(self.value, register_type(to, self.lanes)), dtype)

    def intrinsic(self, name: str, *args: Register) -> Register:
        """``llvm.NAME.TYPE(self, *args)``: an LLVM intrinsic overloaded on this register's type."""
        values = [self.value, *(a.value for a in args)]
        return self.like(call_intrinsic(self.builder, name, self.type, values))

    def __add__(self, other: Register | Number) -> Register:
        return OPERATORS["add"](self, other)

    def __sub__(self, other: Register | Number) -> Register:
        return OPERATORS["sub"](self, other)

    def __mul__(self, other: Register | Number) -> Register:
        return OPERATORS["mul"](self, other)

    def __truediv__(self, other: Register | Number) -> Register:
        return OPERATORS["div"](self, other)

    def __and__(self, other: Register | Number) -> Register:
        return OPERATORS["bitand"](self, other)

    def __or__(self, other: Register | Number) -> Register:
        return OPERATORS["bitor"](self, other)

    def __xor__(self, other: Register | Number) -> Register:
        return OPERATORS["bitxor"](self, other)

    def __lt__(self, other: Register | Number) -> Register:
        return OPERATORS["lt"](self, other)

    def __le__(self, other: Register | Number) -> Register:
        return OPERATORS["le"](self, other)

    def __gt__(self, other: Register | Number) -> Register:
        return OPERATORS["gt"](self, other)

    def __ge__(self, other: Register | Number) -> Register:
        return OPERATORS["ge"](self, other)

    def __neg__(self) -> Register:
        return OPERATORS["neg"](self)

    def __invert__(self) -> Register:
        return OPERATORS["bitnot"](self)


OPERATORS: dict[str, Callable[..., Register]] = {}  # filled by vector_ops
CONVERT: dict[str, Callable[..., Register]] = {}  # "cast", filled by vector_cast


def together(*args: Register | Number) -> tuple[Register, ...]:
    """All arguments with one width; numbers take the dtype of the first Register that is not weak."""
    registers = [a for a in args if isinstance(a, Register)]
    strong = next((a for a in registers if not a.weak), registers[0])
    wide = strong.splat(max(a.lanes for a in registers))
    return tuple(_fit(a, wide) for a in args)


def _fit(a: Register | Number, model: Register) -> Register:
    if not isinstance(a, Register):
        return model.number(a)
    if a.weak and a.dtype is not model.dtype:
        a = CONVERT["cast"](a, model.dtype)
    return a.splat(model.lanes)


@dataclass(frozen=True, eq=False)
class Pointer:
    """The address of elements of `dtype`."""

    builder: llvm.IRBuilder
    value: llvm.Value
    dtype: DType

    def at(self, index: Register) -> llvm.Value:
        """The address of element number `index` (a scalar)."""
        return self.builder.gep(self.value, [index.value])

    def vector_at(self, index: Register) -> llvm.Value:
        """The address of LANES elements, from number `index` on."""
        t = llvm.VectorType(memory_type(self.dtype), LANES)
        return self.builder.bitcast(self.at(index), t.as_pointer())


def constant(dtype: DType, lanes: int, x: Number) -> llvm.Constant:
    """x in all lanes. TypeError for f16 and bf16: their constants are written in f32 and cast."""
    if is_half(dtype):
        raise TypeError(f"{dtype} is a storage type; write the constant in f32 and cast it")
    number: Number = float(x) if is_real(dtype) else int(x)
    if dtype is f32:
        with np.errstate(over="ignore"):
            number = float(np.float32(number))  # llvmlite would refuse digits that f32 lacks
    element = element_type(dtype)
    return llvm.Constant(register_type(element, lanes), number if lanes == 1 else [number] * lanes)


def splat(b: llvm.IRBuilder, x: llvm.Value, lanes: int) -> llvm.Value:
    """The scalar x in all lanes."""
    empty = llvm.Constant(llvm.VectorType(x.type, lanes), llvm.Undefined)
    first = b.insert_element(empty, x, llvm.Constant(llvm.IntType(32), 0))
    zeros = llvm.Constant(llvm.VectorType(llvm.IntType(32), lanes), [0] * lanes)
    return b.shuffle_vector(first, empty, zeros)


def lane_numbers(b: llvm.IRBuilder, dtype: DType = i64) -> Register:
    """0, 1, ... LANES-1."""
    t = llvm.VectorType(element_type(dtype), LANES)
    return Register(b, llvm.Constant(t, list(range(LANES))), dtype, LANES)


def suffix(t: llvm.Type) -> str:
    """A type as it stands in the name of an LLVM intrinsic: f32, v16f32, i1, p0 (pointer)."""
    if isinstance(t, llvm.VectorType):
        return f"v{t.count}{suffix(t.element)}"
    if isinstance(t, llvm.IntType):
        return f"i{t.width}"
    if isinstance(t, llvm.PointerType):
        return "p0"
    return "f32" if isinstance(t, llvm.FloatType) else "f64"


def call_intrinsic(
    b: llvm.IRBuilder,
    name: str,
    overload: llvm.Type,
    args: list[llvm.Value],
    result: llvm.Type | None = None,
) -> llvm.Value:
    """Call ``llvm.NAME.SUFFIX`` on args; it returns `result` (default: the overload type)."""
    return call_function(b, f"llvm.{name}.{suffix(overload)}", result or overload, args)


def call_function(
    b: llvm.IRBuilder, name: str, result: llvm.Type, args: list[llvm.Value], pure: bool = False
) -> llvm.Value:
    """Call a function by name; `pure` promises that its result depends on the arguments alone."""
    function = b.module.globals.get(name)
    if function is None:
        function = llvm.Function(b.module, llvm.FunctionType(result, [a.type for a in args]), name)
    return b.call(function, args, attrs=("nounwind",) if pure else ())
