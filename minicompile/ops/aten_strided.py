"""Addressing by strides: as_strided and its inverse.

Their operands are row-major here: capture sees to it, since values have no strides at this level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from minicompile.errors import NotNative
from minicompile.ir.types import i64
from minicompile.ops.aten_view import ravel
from minicompile.ops.axes import counting, cut, dropped, filled, reshaped
from minicompile.ops.build import Handle, emit
from minicompile.ops.promote import cast
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats


def _check(x: Handle, size: Sequence[int], stride: Sequence[int], start: int) -> None:
    """NotNative unless every address lies within the elements of x."""
    last = start + sum((n - 1) * s for n, s in zip(size, stride))
    if math.prod(size) and last >= math.prod(x.shape):
        raise NotNative("as_strided beyond the elements of its operand")


@composite(
    "as_strided",
    "as_strided_copy",
    samples=[sample(floats(3, 4), (2, 3), (1, 4), 1), sample(floats(6), (2, 3), (0, 2))],
)
def as_strided(
    self: Handle, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Handle:
    """Element i... is number ``storage_offset + sum(i * stride)`` of self in row-major order.

    Each axis is a window on the flat elements whose dilation is its stride; then the windows' common
    position is chosen, so that the whole remains affine.
    """
    x, start = ravel(self), storage_offset or 0
    _check(self, size, stride, start)
    if math.prod(size) == 0:
        return filled(size, 0, self.dtype)
    for n, s in zip(size, stride):
        if s and n > 1:
            x = emit("window", x, dims=(0,), sizes=(n,), strides=(1,), dilations=(s,))
    x = dropped(cut(x, 0, start, start + 1), 0)
    kept = [d for d, (n, s) in enumerate(zip(size, stride)) if s and n > 1]
    return emit("broadcast", x, shape=tuple(size), dims=tuple(kept))


@composite(
    "as_strided_scatter",
    samples=[sample(floats(3, 4), floats(2, 3), (2, 3), (4, 1), 1)],
)
def as_strided_scatter(
    self: Handle,
    src: Handle,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Handle:
    """A copy of self in which ``as_strided(self, size, stride, storage_offset)`` is src."""
    start = storage_offset or 0
    _check(self, size, stride, start)
    place = filled(size, start, i64)
    for d, s in enumerate(stride):
        place = place + counting(size, d) * s
    flat, src = ravel(self), cast(src, self.dtype)
    return reshaped(emit("scatter", flat, src, place, dims=(0,), combine="set"), self.shape)
