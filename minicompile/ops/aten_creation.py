"""Tensors out of nothing: constants; and copies, also into another dtype.

`empty` gives zeros: a result without defined values must have some.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.errors import NotNative
from minicompile.ir.graph import TorchConst
from minicompile.ir.types import DType, bool_, f32, f64, i32, i64
from minicompile.ops.build import Handle, broadcast_to
from minicompile.ops.promote import (
    cast,
    constant,
    default_float,
    like,
    real,
)
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import bools, floats, ints

Number = bool | int | float
Options = TorchConst | bool | str | None  # layout, device, pin_memory, memory_format


def plain(options: dict[str, Options]) -> None:
    """NotNative unless the memory options ask for an ordinary tensor on the CPU."""
    if "cpu" not in str(options.get("device") or "cpu") or options.get("pin_memory"):
        raise NotNative("a tensor elsewhere than in ordinary CPU memory")
    if str(options.get("layout") or "torch.strided") != "torch.strided":
        raise NotNative("a layout other than strided")


def inferred(value: Number) -> DType:
    """The dtype of a tensor made of a Python number."""
    if isinstance(value, complex):
        raise NotNative("complex numbers are left to PyTorch")
    return bool_ if isinstance(value, bool) else i64 if isinstance(value, int) else default_float()


# ------------------------------------------------------------------------------ constants


@composite("full", samples=[sample((2, 3), 1.5), sample((), True), sample((0,), 7, dtype=i32)])
def full(
    size: Sequence[int], fill_value: Number, dtype: DType | None = None, **options: Options
) -> Handle:
    """A number everywhere; its kind gives the dtype unless one is asked for."""
    plain(options)
    if dtype is not None and not isinstance(dtype, DType):
        raise NotNative(f"{dtype} is left to PyTorch")
    return constant(fill_value, dtype or inferred(fill_value), tuple(size))


@composite("zeros", "empty.memory_format", samples=[sample((2, 3)), sample((), dtype=i64)])
def zeros(size: Sequence[int], dtype: DType | None = None, **options: Options) -> Handle:
    """0 everywhere, in the default float dtype unless another is asked for."""
    return full(size, 0, dtype or default_float(), **options)


@composite("ones", samples=[sample((2, 3)), sample((2,), dtype=bool_)])
def ones(size: Sequence[int], dtype: DType | None = None, **options: Options) -> Handle:
    """1 everywhere, in the default float dtype unless another is asked for."""
    return full(size, 1, dtype or default_float(), **options)


@composite("empty_strided", samples=[sample((2, 3), (1, 2))])
def empty_strided(
    size: Sequence[int], stride: Sequence[int], dtype: DType | None = None, **options: Options
) -> Handle:
    """`empty` with strides of its own; values have none here."""
    return zeros(size, dtype, **options)


@composite("empty_permuted", samples=[sample((2, 3), (1, 0))])
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    dtype: DType | None = None,
    **options: Options,
) -> Handle:
    """`empty` with an order of axes in memory; values have none here."""
    return zeros(size, dtype, **options)


@composite("scalar_tensor", samples=[sample(2.5), sample(3, dtype=i64)])
def scalar_tensor(s: Number, dtype: DType | None = None, **options: Options) -> Handle:
    """A number as a 0-d tensor, in the default float dtype unless another is asked for."""
    return full((), s, dtype or default_float(), **options)


@composite("full_like", samples=[sample(floats(2, 3), 2), sample(ints(3), 1.5, dtype=f64)])
def full_like(
    self: Handle, fill_value: Number, dtype: DType | None = None, **options: Options
) -> Handle:
    """A number everywhere, in the shape and dtype of self."""
    return full(self.shape, fill_value, dtype or self.dtype, **options)


LIKE = [sample(floats(2, 3)), sample(ints(3), dtype=bool_)]


@composite("zeros_like", "empty_like", samples=LIKE)
def zeros_like(self: Handle, dtype: DType | None = None, **options: Options) -> Handle:
    """0 everywhere, in the shape and dtype of self."""
    return full_like(self, 0, dtype, **options)


@composite("ones_like", samples=LIKE)
def ones_like(self: Handle, dtype: DType | None = None, **options: Options) -> Handle:
    """1 everywhere, in the shape and dtype of self."""
    return full_like(self, 1, dtype, **options)


@composite("new_full", samples=[sample(floats(2), (3, 4), 5), sample(ints(1), (2,), 1, dtype=f32)])
def new_full(
    self: Handle,
    size: Sequence[int],
    fill_value: Number,
    dtype: DType | None = None,
    **options: Options,
) -> Handle:
    """A number everywhere, in the dtype of self."""
    return full(size, fill_value, dtype or self.dtype, **options)


NEW = [sample(floats(2), (3, 4)), sample(ints(1), (), dtype=f32)]


@composite("new_zeros", "new_empty", samples=NEW)
def new_zeros(
    self: Handle, size: Sequence[int], dtype: DType | None = None, **options: Options
) -> Handle:
    """0 everywhere, in the dtype of self."""
    return full(size, 0, dtype or self.dtype, **options)


@composite("new_ones", samples=NEW)
def new_ones(
    self: Handle, size: Sequence[int], dtype: DType | None = None, **options: Options
) -> Handle:
    """1 everywhere, in the dtype of self."""
    return full(size, 1, dtype or self.dtype, **options)


@composite("new_empty_strided", samples=[sample(floats(2), (3, 4), (1, 3))])
def new_empty_strided(
    self: Handle,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: DType | None = None,
    **options: Options,
) -> Handle:
    """`new_empty` with strides of its own; values have none here."""
    return new_zeros(self, size, dtype, **options)


# ------------------------------------------------------------------------------ copies


@composite("clone", "lift_fresh_copy", "lift_fresh", samples=[sample(floats(2, 3)), sample(ints())])
def clone(self: Handle, **options: Options) -> Handle:
    """The same values: at this level a copy is the value itself."""
    return real(self)


@composite(
    "_to_copy",
    samples=[sample(floats(9, low=-9, high=9), dtype=d) for d in (i64, bool_, f64)]
    + [sample(ints(9), dtype=f32), sample(bools(4), dtype=f32), sample(floats(4))],
)
def to_copy(
    self: Handle, dtype: DType | None = None, non_blocking: bool = False, **options: Options
) -> Handle:
    """The values in another dtype: floats truncate to integers, and x != 0 is the bool."""
    plain(options)
    if dtype is not None and not isinstance(dtype, DType):
        raise NotNative(f"{dtype} is left to PyTorch")
    return cast(real(self), dtype or self.dtype)


@composite("copy", samples=[sample(floats(2, 3), ints(3)), sample(ints(2), floats())])
def copy(self: Handle, src: Handle, non_blocking: bool = False) -> Handle:
    """src, broadcast to the shape and cast to the dtype of self."""
    return broadcast_to(cast(src, self.dtype), self.type.shape)


@composite("fill.Scalar", samples=[sample(floats(2, 3), 2), sample(ints(3), 1.5)])
def fill(self: Handle, value: Number) -> Handle:
    """A number everywhere, in the shape and dtype of self."""
    return like(self, value)


@composite("fill.Tensor", samples=[sample(floats(2, 3), floats())])
def fill_tensor(self: Handle, value: Handle) -> Handle:
    """The one element of value everywhere, in the shape and dtype of self."""
    return copy(self, value)
