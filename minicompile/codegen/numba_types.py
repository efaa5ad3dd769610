"""Numba learns the values of generated code: `Vec(dtype, lanes)` and `Ptr(dtype)`.

One typing template and one lowering serve every function on Registers: `vector_function` registers
them.  The result type of a call is not declared anywhere: it is found by running the function once
on a scratch LLVM module.  In the source, Python numbers and loop counters may stand for a constant;
they take the dtype of the operand beside them, so no Numba promotion ever happens.

(Functions written with Numba's own `@njit(inline="always")` cost tens of seconds of compile time
here, and `@overload` seconds; this way a kernel with 50 vector operations compiles in 0.2 s.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from llvmlite import ir as llvm
from numba.core import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.datamodel.registry import default_manager
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, builtin_registry, signature
from numba.extending import register_model

from minicompile.codegen.register import (
    Pointer,
    Register,
    element_type,
    memory_type,
    register_type,
)
from minicompile.ir.types import DType, bool_, f64, i64

F = TypeVar("F", bound=Callable[..., Any])


class Vec(types.Type):
    """`lanes` numbers of `dtype` in a register."""

    def __init__(self, dtype: DType, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(f"{dtype}x{lanes}")


class Ptr(types.Type):
    """The address of elements of `dtype`."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype
        super().__init__(f"{dtype}_ptr")


@register_model(Vec)
class VecModel(PrimitiveModel):
    def __init__(self, manager: Any, vec: Vec) -> None:
        super().__init__(manager, vec, register_type(element_type(vec.dtype), vec.lanes))  # type: ignore[no-untyped-call]


@register_model(Ptr)
class PtrModel(PrimitiveModel):
    def __init__(self, manager: Any, ptr: Ptr) -> None:
        super().__init__(manager, ptr, memory_type(ptr.dtype).as_pointer())  # type: ignore[no-untyped-call]


def vector_function(*keys: Any) -> Callable[[F], F]:
    """Make a function on Registers callable from Numba source, under its own name or under `keys`.

    The function gets Registers (weak ones for Python numbers and loop counters), Pointers, and a
    DType where the source passes one as `f32`; it returns a Register, a Pointer or None.
    """

    def register(f: F) -> F:
        for key in keys or (f,):
            _teach(key, f)
        return f

    return register


def _teach(key: Any, f: Callable[..., Any]) -> None:
    class Template(AbstractTemplate):
        key: Any

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
            if kws or (not any(isinstance(a, (Vec, Ptr)) for a in args) and key is not f):
                return None
            result = result_type(f, args)
            return None if result is None else signature(result, *args)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        result = f(*(argument(builder, t, v) for t, v in zip(sig.args, args)))
        return context.get_dummy_value() if result is None else result.value

    Template.key = key
    builtin_registry.register_global(key, types.Function(Template))
    for pattern in _patterns(key is f):
        lower_builtin(key, *pattern)(lower)


def _patterns(own: bool) -> tuple[tuple[Any, ...], ...]:
    """The argument patterns to register: anything for functions of ours, ours for operators."""
    if own:
        return ((types.VarArg(types.Any),),)
    number = (types.Number, types.Boolean)
    pairs = [(Vec, Vec), *((Vec, n) for n in number), *((n, Vec) for n in number)]
    return ((Vec,), *pairs, (Ptr, types.Any), (Ptr, types.Any, types.Any))


def argument(builder: llvm.IRBuilder, t: types.Type, value: Any) -> Any:
    """What a Register function gets for a Numba value. TypeError for other kinds of value."""
    if isinstance(t, Vec):
        return Register(builder, value, t.dtype, t.lanes)
    if isinstance(t, Ptr):
        return Pointer(builder, value, t.dtype)
    if isinstance(t, types.IntegerLiteral):
        return int(t.literal_value)
    if isinstance(t, types.Integer):
        wide = builder.sext(value, element_type(i64)) if value.type.width < 64 else value
        return Register(builder, wide, i64, 1, weak=True)
    if isinstance(t, types.Float):
        return Register(builder, value, f64, 1, weak=True)
    if isinstance(t, types.Boolean):
        return Register(builder, value, bool_, 1, weak=True)
    if isinstance(t, types.Function) and isinstance(dtype := DTYPE_NAMES.get(t.typing_key), DType):
        return dtype
    raise TypeError(f"{t} has no register form")


DTYPE_NAMES: dict[Any, DType] = {}  # the functions f32, i64, ... of generated code


@functools.cache
def result_type(f: Callable[..., Any], args: tuple[types.Type, ...]) -> types.Type | None:
    """The Numba type of f(*args), found by writing f's instructions into a scratch module.

    None when f does not accept these types.
    """
    function = llvm.Function(llvm.Module(), llvm.FunctionType(llvm.VoidType(), []), "scratch")
    builder = llvm.IRBuilder(function.append_basic_block())
    try:
        result = f(*(argument(builder, t, _undefined(t)) for t in args))
    except TypeError:
        return None
    return numba_type(result)


def numba_type(result: Any) -> types.Type:
    if result is None:
        return types.void
    if isinstance(result, Register) and result.weak:
        return types.boolean if result.dtype is bool_ else types.int64
    return Ptr(result.dtype) if isinstance(result, Pointer) else Vec(result.dtype, result.lanes)


def _undefined(t: types.Type) -> llvm.Constant | None:
    if isinstance(t, types.Function):
        return None
    return llvm.Constant(default_manager[t].get_value_type(), llvm.Undefined)
