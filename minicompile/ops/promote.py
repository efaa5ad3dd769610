"""Promotion: how ATen brings the operands of a pointwise op to one dtype, and where it computes.

An ATen kernel promotes its operands to a *result dtype* (`types.promote`), computes there (half floats
compute in f32), and rounds once.  `arithmetic`, `floating` and `predicate` do that around a formula:

    floating(lambda x: el.exp(x) - 1.0, x)       # i64 -> f32; bf16 -> f32 -> bf16

Complex numbers raise NotNative: the op stays Extern.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from minicompile.errors import NotNative
from minicompile.ir.types import DType, Shape, bf16, bool_, f16, f32, from_torch, promote
from minicompile.ops.build import Handle, emit

Operand: TypeAlias = "Handle | bool | int | float"
Formula: TypeAlias = "Callable[..., Handle]"


def common_dtype(*xs: Operand) -> DType:
    """The result dtype of operands (``torch.result_type``). NotNative if any is complex."""
    for x in xs:
        if isinstance(x, complex) or (isinstance(x, Handle) and x.dtype.kind == "c"):
            raise NotNative("complex numbers are left to PyTorch")
    return promote(*(x.type if isinstance(x, Handle) else x for x in xs))


def real(x: Handle) -> Handle:
    """x, if it is not complex: such a value may be a lazy conjugate, which only PyTorch can copy."""
    common_dtype(x)
    return x


def default_float() -> DType:
    """What integers become in float functions: ``torch.get_default_dtype()``."""
    return from_torch(torch.get_default_dtype())


def float_dtype(dtype: DType) -> DType:
    """The dtype itself if it is a float, else the default float dtype."""
    return dtype if dtype.is_float else default_float()


def compute_dtype(dtype: DType) -> DType:
    """Where values of a dtype are computed: f32 for half floats, else the dtype itself."""
    return f32 if dtype in (f16, bf16) else dtype


def number(value: bool | int | float, dtype: DType) -> bool | int | float:
    """A Python number as a constant of `dtype`. NotNative where it does not fit an integer dtype."""
    if isinstance(value, complex) or dtype.kind == "c":
        raise NotNative("complex numbers are left to PyTorch")
    if dtype.is_float:
        return float(value)
    if dtype is bool_:
        return bool(value)
    info = torch.iinfo(dtype.torch)
    if value != value or not info.min <= value <= info.max:
        raise NotNative(f"{value} does not fit {dtype}")
    return int(value)


def rounded(value: bool | int | float, dtype: DType) -> bool | int | float:
    """The number that a tensor of `dtype` would hold: 0.1 in bf16 is 0.10009765625."""
    fitting = number(value, dtype)
    return fitting if not dtype.is_float else torch.tensor(fitting, dtype=dtype.torch).item()


def cast(x: Handle, dtype: DType) -> Handle:
    """x in another dtype; x itself if it has it already."""
    return x if x.dtype is dtype else emit("cast", x, dtype=dtype)


def widened(x: Handle) -> Handle:
    """Half floats as f32, anything else as it is."""
    return cast(x, compute_dtype(x.dtype))


def stored(x: Handle, dtype: DType) -> Handle:
    """x rounded to a dtype and widened again: what a kernel's intermediate result in memory holds."""
    return widened(cast(x, dtype))


def promoted(x: Operand, dtype: DType) -> Any:
    """An operand rounded to the result dtype, then widened for computing."""
    if isinstance(x, Handle):
        return stored(x, dtype)
    return rounded(x, dtype)


def scalar_exact(x: Operand, dtype: DType) -> Any:
    """As `promoted`, but numbers and 0-d tensors reach half-float arithmetic unrounded.

    ATen's mul, div and lerp kernels take a scalar operand in the computing dtype
    (``original_scalar_value<opmath_t>``): bf16 x * 0.1 multiplies by f32 0.1, but x + 0.1 adds bf16 0.1.
    """
    compute = compute_dtype(dtype)
    if not isinstance(x, Handle):
        return number(x, compute)
    if not x.shape and compute is not dtype:
        return cast(x, compute)
    return promoted(x, dtype)


def arithmetic(f: Formula, *xs: Operand, dtype: DType | None = None, exact: bool = False) -> Handle:
    """f on the operands in their result dtype (or `dtype`), half floats in f32; the result rounded once.

    `exact=True` keeps scalar operands of half floats unrounded, see `scalar_exact`.
    """
    result = dtype or common_dtype(*xs)
    bring = scalar_exact if exact else promoted
    return cast(f(*(bring(x, result) for x in xs)), result)


def floating(f: Formula, *xs: Operand, exact: bool = False) -> Handle:
    """As `arithmetic`, with integers and bools taken to the default float dtype first."""
    return arithmetic(f, *xs, dtype=float_dtype(common_dtype(*xs)), exact=exact)


def predicate(f: Formula, *xs: Operand) -> Handle:
    """f on the operands in their result dtype, half floats in f32; f's result is bool."""
    result = common_dtype(*xs)
    return f(*(promoted(x, result) for x in xs))


def constant(value: bool | int | float, dtype: DType, shape: Shape = ()) -> Handle:
    """A tensor of one value; half floats are rounded from f32, since they cannot compute."""
    made = emit("full", shape=shape, value=number(value, dtype), dtype=compute_dtype(dtype))
    return cast(made, dtype)


def like(x: Handle, value: bool | int | float) -> Handle:
    """The constant `value` in the shape and dtype of x."""
    return constant(value, x.dtype, x.type.shape)


def tensors(*xs: Operand) -> tuple[Handle, ...]:
    """The operands with Python numbers made 0-d tensors of the result dtype."""
    dtype = common_dtype(*xs)
    return tuple(x if isinstance(x, Handle) else constant(x, dtype) for x in xs)
