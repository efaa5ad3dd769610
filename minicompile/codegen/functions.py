"""`@kernel` and `@host`: how the functions of a generated module become machine code.

Kernels are compiled one by one, to object files of their own, and the host calls them through symbols
of the process.  So a kernel is never linked into, or optimised again with, the
host that calls it: the host of a model with 24 layers stays a list of calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba import njit
from numba.core import typed_passes, types, untyped_passes
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager

from minicompile.codegen.numba_types import Ptr
from minicompile.ir.types import DTYPES, u8

_FLAGS: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}


class ShortPipeline(CompilerBase):
    """The passes of Numba that straight-line code on vectors needs: 8 of 27.

    The others inline closures, prune branches, rewrite array expressions and so on: a third of the time.
    """

    def define_pipelines(self) -> list[PassManager]:
        passes = (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.NativeLowering,
            typed_passes.NoPythonBackend,
        )
        manager = PassManager("minicompile")
        for p in passes:
            manager.add_pass(p, p.__name__)
        manager.finalize()
        return [manager]


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


class KernelFunction:
    """A kernel of a generated module, compiled by Numba when asked to."""

    def __init__(self, function: Callable[..., None]) -> None:
        self.name = function.__name__
        self.types = tuple(parameter_type(str(a)) for a in function.__annotations__.values())
        self.dispatcher = njit(pipeline_class=ShortPipeline, **_FLAGS)(function)

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
        self.dispatcher.compile(types.void(*self.types))
        return self.dispatcher.overloads[self.types]


def kernel(function: Callable[..., None]) -> KernelFunction:
    return KernelFunction(function)


def host(function: Callable[..., int]) -> Callable[..., int]:
    """Marks a host: `host_compiler` compiles its text, Numba does not see it."""
    return function
