"""Machine code in this process: object files become symbols, and a host becomes a Python function.

Only LLVM is needed here, not Numba: a process whose kernels are all in the cache never imports Numba
(which would take longer than everything else it does).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import llvmlite.binding as binding

METH_FASTCALL = 0x0080


class _MethodDef(ctypes.Structure):
    """PyMethodDef of CPython's methodobject.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def machine() -> binding.TargetMachine:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(opt=2, reloc="default", codemodel="jitdefault", jit=True)


@functools.cache
def _engine() -> binding.ExecutionEngine:
    """LLVM's just-in-time linker; code that it holds lives as long as the process."""
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine())


def load(data: bytes, name: str) -> int:
    """Link an object file into the process; the address of its function `name`."""
    engine = _engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(data))
    engine.finalize_object()
    address: int = engine.get_function_address(name)
    if not address:
        raise ValueError(f"the object file has no function {name}")
    return address


def define(symbol: str, address: int) -> None:
    """Give an address a name, under which object files loaded later find it."""
    binding.add_symbol(symbol, address)


_alive: list[_MethodDef] = []  # CPython keeps a pointer to each definition


def python_function(address: int, arguments: int, name: str) -> Callable[..., int]:
    """A Python function that calls a host: ints in, int out, without the GIL meanwhile.

    It takes 50 ns and 10 ns an argument, a third of what `ctypes` takes.  The number of arguments is
    not checked: only generated code calls it.
    """
    wrapper = _fastcall(arguments)
    definition = _MethodDef(
        name.encode(), wrapper, METH_FASTCALL, b"a host function of minicompile"
    )
    _alive.append(definition)
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype = ctypes.py_object
    create.argtypes = [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., int] = create(ctypes.byref(definition), address, None)
    return function


@functools.cache
def _fastcall(arguments: int) -> int:
    """The address of a C function (self, args, count) for METH_FASTCALL; self holds the host's address.

    Numba's calling convention: (result slot, exception slot, arguments...) -> status; hosts never fail.
    """
    name = f"minicompile_call_{arguments}"
    unpack = "\n".join(
        f"  %p{n} = getelementptr ptr, ptr %args, i64 {n}\n"
        f"  %o{n} = load ptr, ptr %p{n}\n"
        f"  %a{n} = call i64 @PyLong_AsLongLong(ptr %o{n})"
        for n in range(arguments)
    )
    passed = "".join(f", i64 %a{n}" for n in range(arguments))
    text = f"""
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
define ptr @{name}(ptr %self, ptr %args, i64 %count) {{
  %result = alloca i64
  %exception = alloca ptr
  %host = call ptr @PyLong_AsVoidPtr(ptr %self)
{unpack}
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %host(ptr %result, ptr %exception{passed})
  call void @PyEval_RestoreThread(ptr %thread)
  %value = load i64, ptr %result
  %object = call ptr @PyLong_FromLongLong(i64 %value)
  ret ptr %object
}}
"""
    return load(machine().emit_object(binding.parse_assembly(text)), name)
