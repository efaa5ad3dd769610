"""PyTorch's objects as data of the IR: tensors as types, the other arguments as literals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from minicompile.errors import CompileError
from minicompile.ir.graph import Arg, TorchConst, Value
from minicompile.ir.types import TensorType, contiguous_strides, from_torch, supported


def to_arg(x: Any, value_of: Callable[[torch.Tensor], Value]) -> Arg:
    """An argument of an ATen op as an argument of a node. CompileError MC013 for what has no form."""
    if isinstance(x, torch.Tensor):
        return value_of(x)
    if isinstance(x, list | tuple):
        return tuple(to_arg(y, value_of) for y in x)
    if isinstance(x, torch.dtype):
        return from_torch(_known(x, "a tensor"))
    if isinstance(x, torch.device):
        return TorchConst(f"torch.device('{x}')")
    if isinstance(x, torch.layout | torch.memory_format):
        return TorchConst(str(x))
    if x is None or isinstance(x, bool | int | float | complex | str):
        return x
    if isinstance(x, torch.Generator):
        raise CompileError(
            "MC013",
            "a torch.Generator cannot be part of a graph",
            remedy="Draw from the default generator (torch.manual_seed), or pass the numbers in.",
        )
    raise CompileError("MC013", f"an argument of type {type(x).__name__} cannot be part of a graph")


def value_type(t: torch.Tensor, device: str) -> TensorType:
    """The type of a tensor on this kind of device, without strides. CompileError MC013 if unsupported."""
    if t.layout is not torch.strided:
        raise CompileError(
            "MC013",
            f"a tensor has layout {t.layout}; only strided tensors can be compiled",
            remedy="Convert it with .to_dense() before the compiled function.",
        )
    if t.device.type != device:
        raise CompileError(
            "MC013",
            f"a tensor is on device {t.device}; the backend compiles for {device}",
            remedy=f"Move the model and its inputs with .to({device!r}), or choose another backend.",
        )
    return TensorType(from_torch(_known(t.dtype, "a tensor")), tuple(t.shape))


def argument_type(t: torch.Tensor, device: str) -> TensorType:
    """The type of a graph input or parameter: with its strides, unless it is contiguous."""
    pure = value_type(t, device)
    if t.is_conj() or t.is_neg():
        raise CompileError(
            "MC013",
            "an input is a lazily conjugated or negated view",
            remedy="Call .resolve_conj().resolve_neg() on it first.",
        )
    return pure if t.is_contiguous() else TensorType(pure.dtype, pure.shape, tuple(t.stride()))


def eager_strides(t: torch.Tensor) -> tuple[int, ...] | None:
    """The strides of a result; None when they are plainly row-major."""
    strides = tuple(t.stride())
    return None if strides == contiguous_strides(tuple(t.shape)) else strides


def _known(dtype: torch.dtype, what: str) -> torch.dtype:
    if not supported(dtype):
        raise CompileError(
            "MC013",
            f"{what} has dtype {dtype}, which no stage knows",
            remedy="Convert it to a supported dtype (float32, bfloat16, int64, ...) first.",
        )
    return dtype
