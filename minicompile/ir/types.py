"""Types: what a value is.

    dtype  := f64 | f32 | f16 | bf16 | i64 | i32 | i16 | i8 | u8 | bool | c64 | c128
    dim    := INT | NAME                         a named dimension is a symbol: ids: i64[B, T]
    type   := dtype | dtype[dim, ...]            zero dimensions: just the dtype
            | type @ strides(INT, ...)           only on graph inputs and loop parameters

Shapes are tuples, strides count elements (not bytes), as in PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch

Dim = int | str
Shape = tuple[Dim, ...]


@dataclass(frozen=True)
class DType:
    """An element type. `kind` is one letter: f float, i signed, u unsigned, b bool, c complex."""

    name: str
    kind: str
    bytes: int
    torch_name: str

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def torch(self) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, self.torch_name)
        return dtype

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned integer; bool is not one."""
        return self.kind in "iu"


f64 = DType("f64", "f", 8, "float64")
f32 = DType("f32", "f", 4, "float32")
f16 = DType("f16", "f", 2, "float16")
bf16 = DType("bf16", "f", 2, "bfloat16")
i64 = DType("i64", "i", 8, "int64")
i32 = DType("i32", "i", 4, "int32")
i16 = DType("i16", "i", 2, "int16")
i8 = DType("i8", "i", 1, "int8")
u8 = DType("u8", "u", 1, "uint8")
bool_ = DType("bool", "b", 1, "bool")
c64 = DType("c64", "c", 8, "complex64")
c128 = DType("c128", "c", 16, "complex128")

DTYPES: dict[str, DType] = {
    d.name: d for d in (f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool_, c64, c128)
}
_FROM_TORCH: dict[torch.dtype, DType] = {d.torch: d for d in DTYPES.values()}


def from_torch(dtype: torch.dtype) -> DType:
    """The DType of a torch dtype. KeyError for those no stage knows (quantised, float8, ...)."""
    return _FROM_TORCH[dtype]


def supported(dtype: torch.dtype) -> bool:
    return dtype in _FROM_TORCH


@dataclass(frozen=True)
class TensorType:
    """dtype and shape; `strides` (elements) only where memory already exists: inputs, parameters.

    `strides=None` means row-major contiguous.
    """

    dtype: DType
    shape: Shape = ()
    strides: tuple[int, ...] | None = None

    def __str__(self) -> str:
        text = self.dtype.name
        if self.shape:
            text += f"[{', '.join(map(str, self.shape))}]"
        if self.strides is not None:
            text += f" @ strides({', '.join(map(str, self.strides))})"
        return text

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape as integers. ValueError while a dimension is still a symbol."""
        if not all(isinstance(d, int) for d in self.shape):
            raise ValueError(f"{self} has symbolic dimensions")
        return tuple(int(d) for d in self.shape)

    @property
    def numel(self) -> int:
        n = 1
        for d in self.dims:
            n *= d
        return n

    @property
    def bytes(self) -> int:
        return self.numel * self.dtype.bytes

    @property
    def dense_strides(self) -> tuple[int, ...]:
        """The strides to use: the given ones, or row-major."""
        return contiguous_strides(self.dims) if self.strides is None else self.strides

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(self.dtype, tuple(shape))

    def with_dtype(self, dtype: DType) -> TensorType:
        return replace(self, dtype=dtype)

    def pure(self) -> TensorType:
        """The same type without a memory layout."""
        return replace(self, strides=None)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements: (2, 3, 4) -> (12, 4, 1)."""
    strides, step = [], 1
    for d in reversed(shape):
        strides.append(step)
        step *= max(d, 1)
    return tuple(reversed(strides))


def promote(*operands: TensorType | DType | bool | int | float | complex) -> DType:
    """PyTorch's result type of tensors and Python scalars (``torch.result_type``).

    Within each rank (tensors with dimensions, 0-d tensors, Python numbers) dtypes promote pairwise; a
    lower rank counts only where its category (bool < integer < float < complex) is higher.
    A bare DType counts as a tensor with dimensions. KeyError if the result is no DType (complex32).
    Source: update_result_type_state and combine_categories in aten/src/ATen/native/TypeProperties.cpp.
    """
    best: list[torch.dtype | None] = [None, None, None]
    for x in operands:
        rank, dtype = _rank(x)
        have = best[rank]
        best[rank] = dtype if have is None else torch.promote_types(have, dtype)
    result = _combine(best[0], _combine(best[1], best[2]))
    assert result is not None, "promote() needs at least one operand"
    return from_torch(result)


def _rank(x: TensorType | DType | bool | int | float | complex) -> tuple[int, torch.dtype]:
    """Rank (0 with dimensions, 1 zero-dimensional, 2 Python number) and dtype of an operand."""
    if isinstance(x, DType):
        return 0, x.torch
    if isinstance(x, TensorType):
        return (0 if x.shape else 1), x.dtype.torch
    if isinstance(x, bool):
        return 2, torch.bool
    if isinstance(x, int):
        return 2, torch.int64
    default = torch.get_default_dtype()
    return 2, (default.to_complex() if isinstance(x, complex) else default)


def _combine(higher: torch.dtype | None, lower: torch.dtype | None) -> torch.dtype | None:
    """The dtype of a higher and a lower rank together."""
    if higher is None or lower is None or higher.is_complex:
        return lower if higher is None else higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if higher == torch.bool or lower.is_floating_point or lower.is_complex:
        return torch.promote_types(higher, lower)
    return higher
