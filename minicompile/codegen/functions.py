"""`@kernel` and `@host`: how the functions of a generated module become machine code.

Kernels are compiled one by one, to object files of their own, and the host calls them through symbols
of the process.  So a kernel is never linked into, or optimised again with, the
host that calls it: the host of a model with 24 layers stays a list of calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir as llvm
from numba import njit
from numba.core import cgutils, types

from minicompile.codegen.numba_types import Ptr, vector_function
from minicompile.codegen.register import Pointer, Register, element_type
from minicompile.ir.types import DTYPES, i64, u8

_FLAGS: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}


@dataclass(frozen=True)
class ObjectCode:
    """Machine code of one function: an object file, and the function's name in it."""

    name: str
    data: bytes


def parameter_type(annotation: str) -> types.Type:
    """``f32[8, 16] @ strides(1, 8)`` -> address of f32; ``memory`` -> of bytes; ``int`` -> i64."""
    if annotation == "memory":
        return Ptr(u8)
    name = annotation.split("[")[0].split(" ")[0]
    return Ptr(DTYPES[name]) if name in DTYPES else types.int64


class GeneratedFunction:
    """A function of a generated module, compiled by Numba when asked to."""

    result: types.Type
    types: tuple[types.Type, ...]

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.dispatcher = njit(**_FLAGS)(function)

    def compile(self) -> ObjectCode:
        """Compile with Numba. NumbaError if it refuses."""
        result = self._compiled()
        return ObjectCode(result.fndesc.llvm_func_name, result.library._get_compiled_object())

    def llvm(self) -> str:
        """Optimised LLVM IR."""
        text: str = self._compiled().library.get_llvm_str()
        return text

    def assembly(self) -> str:
        text: str = self._compiled().library.get_asm_str()
        return text

    def _compiled(self) -> Any:
        self.dispatcher.compile(self.result(*self.types))
        return self.dispatcher.overloads[self.types]


class KernelFunction(GeneratedFunction):
    """A kernel. Calling it on Registers writes a call of the machine code known as `symbol`.

    The symbol is set before the host is compiled.
    """

    result = types.void
    symbol = ""

    def __init__(self, function: Callable[..., None]) -> None:
        super().__init__(function)
        self.types = tuple(parameter_type(str(a)) for a in function.__annotations__.values())
        vector_function()(self)

    def __call__(self, *args: Any) -> None:
        """Numba's calling convention: (result slot, exception slot, arguments...) -> status."""
        b = args[0].builder
        slots = [cgutils.alloca_once(b, cgutils.voidptr_t) for _ in range(2)]
        values = [_passed(a, t) for a, t in zip(args, self.types, strict=True)]
        signature = llvm.FunctionType(llvm.IntType(32), [v.type for v in (*slots, *values)])
        function = b.module.globals.get(self.symbol)
        if function is None:
            function = llvm.Function(b.module, signature, self.symbol)
        b.call(function, [*slots, *values])


def _passed(a: Register | Pointer, t: types.Type) -> llvm.Value:
    if isinstance(t, Ptr) and isinstance(a, Register):
        return a.builder.inttoptr(a.value, element_type(u8).as_pointer())
    return a.value


class HostFunction(GeneratedFunction):
    """A host: all its arguments are addresses (int), and so is its result."""

    result = types.int64

    def __init__(self, function: Callable[..., int]) -> None:
        super().__init__(function)
        self.types = (types.int64,) * function.__code__.co_argcount


def kernel(function: Callable[..., None]) -> KernelFunction:
    return KernelFunction(function)


def host(function: Callable[..., int]) -> HostFunction:
    return HostFunction(function)


def _weak(b: llvm.IRBuilder, value: llvm.Value) -> Register:
    return Register(b, value, i64, 1, weak=True)


@vector_function()
def address(table: Register, n: Register) -> Register:
    """Entry n of the table of addresses at `table`."""
    b = table.builder
    start = b.inttoptr(table.value, llvm.IntType(64).as_pointer())
    return _weak(b, b.load(b.gep(start, [n.value])))


@vector_function()
def error_cell(at: Register) -> Pointer:
    """The memory at the address `at` as the cell that holds the number of a failed check: now 0."""
    b = at.builder
    cell = b.inttoptr(at.value, llvm.IntType(64).as_pointer())
    b.store(llvm.Constant(llvm.IntType(64), 0), cell)
    return Pointer(b, cell, i64)


@vector_function()
def failed(error: Pointer) -> Register:
    """The number of the check that failed, 0 if none did, as a Python int."""
    return _weak(error.builder, error.builder.load(error.value))
