"""Creation primitives: expressions of the index alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from minicompile.ir.loop import Const, Expr, IndexValue
from minicompile.ir.types import DType, Shape, TensorType, i64
from minicompile.ops.registry import Kind, primitive


def _full(*, shape: Shape, value: bool | int | float, dtype: DType) -> TensorType:
    return TensorType(dtype, tuple(shape))


def _full_element(attrs: Mapping[str, Any], out: Any) -> Expr:
    return Const(attrs["value"], attrs["dtype"])


full = primitive(
    "full",
    Kind.CREATION,
    _full,
    lambda shape, value, dtype: torch.full(shape, value, dtype=dtype.torch),
    "The constant `value` everywhere.",
    element=_full_element,
)


def _iota(*, shape: Shape, dim: int) -> TensorType:
    if not 0 <= dim < len(shape):
        raise TypeError(f"{dim} is not an axis of shape {shape}")
    return TensorType(i64, tuple(shape))


def _iota_meaning(shape: tuple[int, ...], dim: int) -> torch.Tensor:
    view = [1] * len(shape)
    view[dim] = shape[dim]
    return torch.arange(shape[dim]).reshape(view).expand(shape)


def _iota_element(attrs: Mapping[str, Any], out: Any) -> Expr:
    return IndexValue(out[attrs["dim"]])


iota = primitive(
    "iota",
    Kind.CREATION,
    _iota,
    _iota_meaning,
    "The index along axis `dim`, as i64: 0, 1, 2, ...",
    element=_iota_element,
)
