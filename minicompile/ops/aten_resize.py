"""Resizing images: upsample_nearest, linear, bilinear, trilinear and bicubic.

Position o of the result is read at a real-valued place of the input, computed as ATen computes it, in f32
(f64 for f64 input).  Nearest with a whole ratio is a layout; everything else gathers 1, 2 or 4 elements per
axis and weighs them.  Source: aten/src/ATen/native/UpSample.h.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from minicompile.errors import NotNative
from minicompile.ir.types import DType, f32, f64, i64
from minicompile.ops.axes import along, counting, cut, inserted, moved, reshaped
from minicompile.ops.build import Handle, emit
from minicompile.ops.elementwise import floor, maximum, minimum
from minicompile.ops.promote import cast, widened

Scales = Sequence[float | None]

# ---------------------------------------------------------------------------------- nearest


def step(size: int, out: int, scale: float | None) -> float:
    """How far one position of the result goes in the input (compute_scales_value)."""
    return 1.0 / scale if scale is not None and scale > 0 else size / out


def nearest_axis(x: Handle, d: int, out: int, scale: float | None, exact: bool) -> Handle:
    """Axis d at the nearest of its elements: ``floor(o * step)``, or of the centres if exact."""
    size = x.shape[d]
    ratio = step(size, out, scale)
    dtype, shift = f64 if x.dtype is f64 else f32, 0.5 if exact else 0.0
    real = np.dtype(np.float64 if dtype is f64 else np.float32)
    o = (np.arange(out) + shift).astype(real)
    read = np.minimum(np.floor(o * real.type(ratio)).astype(np.int64), size - 1)
    if out == 0:
        return cut(x, d, 0, 0)
    if out % size == 0 and np.array_equal(read, np.arange(out) // (out // size)):
        return _enlarged(x, d, out // size)
    if size % out == 0 and np.array_equal(read, read[0] + np.arange(out) * (size // out)):
        return cut(x, d, int(read[0]), int(read[-1]) + 1, size // out)
    places = cast(counting((out,), 0), dtype)
    places = cast(floor((places + shift if exact else places) * ratio), i64)
    picked = emit("gather", x, minimum(places, size - 1), dims=(d,))
    return moved(picked, (0,), (d,))


def _enlarged(x: Handle, d: int, times: int) -> Handle:
    """Each element of an axis `times` times in a row."""
    x = inserted(x, d + 1)
    shape = (*x.shape[: d + 1], times, *x.shape[d + 2 :])
    wide = emit("broadcast", x, shape=shape, dims=range(x.ndim))
    return reshaped(wide, (*shape[:d], shape[d] * times, *shape[d + 2 :]))


# ---------------------------------------------------------------------------------- interpolation


@dataclass(frozen=True)
class Tap:
    """One element that an axis reads: its index (i64) and its weight (None: 1), both [outputs]."""

    index: Handle
    weight: Handle | None


@dataclass(frozen=True)
class Axis:
    """One axis to resize. `aligned`: the first and last elements stay where they are."""

    size: int
    out: int
    aligned: bool
    scale: float | None
    dtype: DType

    def places(self) -> Handle:
        """The real-valued place in the input of each position (area_pixel_compute_source_index)."""
        o = cast(counting((self.out,), 0), self.dtype)
        if self.aligned:
            return o * ((self.size - 1) / (self.out - 1) if self.out > 1 else 0.0)
        return (o + 0.5) * step(self.size, self.out, self.scale) - 0.5


def linear_taps(a: Axis) -> list[Tap]:
    """The two neighbours, weighed by how near they are; places before the first count as 0."""
    if a.out == a.size:  # whatever the scale says
        return [Tap(counting((a.out,), 0), None)]
    place = maximum(a.places(), 0.0)
    low = minimum(cast(floor(place), i64), a.size - 1)
    far = minimum(maximum(place - cast(low, a.dtype), 0.0), 1.0)
    return [Tap(low, 1.0 - far), Tap(minimum(low + 1, a.size - 1), far)]


def cubic_taps(a: Axis) -> list[Tap]:
    """Four neighbours with the weights of Keys' cubic convolution, A = -0.75."""
    place = a.places()
    base = floor(place)
    t = place - base
    weights = [_outer(t + 1.0), _inner(t), _inner(1.0 - t), _outer(2.0 - t)]
    first = cast(base, i64) - 1
    indices = [minimum(maximum(first + k, 0), a.size - 1) for k in range(4)]
    return [Tap(index, weight) for index, weight in zip(indices, weights)]


_A = -0.75


def _inner(t: Handle) -> Handle:
    """The cubic's weight at a distance 0 <= t <= 1."""
    return ((_A + 2.0) * t - (_A + 3.0)) * t * t + 1.0


def _outer(t: Handle) -> Handle:
    """The cubic's weight at a distance 1 <= t <= 2."""
    return ((_A * t - 5.0 * _A) * t + 8.0 * _A) * t - 4.0 * _A


@dataclass(frozen=True)
class Grid:
    """What a resized image reads: the taps of each axis."""

    image: Handle
    outputs: tuple[int, ...]
    taps: list[list[Tap]]

    @property
    def lead(self) -> int:
        """How many axes come before the resized ones."""
        return self.image.ndim - len(self.outputs)

    def total(self, *chosen: Tap) -> Handle:
        """The weighted sum over the axes that no tap is chosen for yet, the last axis innermost."""
        if len(chosen) == len(self.outputs):
            return self.read(chosen)
        terms = [
            self.weighed(self.total(*chosen, tap), tap, len(chosen))
            for tap in self.taps[len(chosen)]
        ]
        return functools.reduce(operator.add, terms)

    def weighed(self, values: Handle, tap: Tap, k: int) -> Handle:
        """Values times the weight of a tap of axis k."""
        if tap.weight is None:
            return values
        return values * along(tap.weight, self.lead + k, values.shape)

    def read(self, chosen: tuple[Tap, ...]) -> Handle:
        """The image at one tap of each axis."""
        index = [along(tap.index, k, self.outputs) for k, tap in enumerate(chosen)]
        picked = emit("gather", self.image, *index, dims=range(self.lead, self.image.ndim))
        return widened(moved(picked, range(len(index)), range(self.lead, self.image.ndim)))


def interpolated(
    x: Handle,
    outputs: Sequence[int],
    aligned: bool,
    scales: Scales,
    taps: Callable[[Axis], list[Tap]],
) -> Handle:
    """The last axes of x resized: the weighted sum over all combinations of taps."""
    if not x.dtype.is_float:
        raise NotNative("interpolation of integers, which PyTorch does in fixed point")
    dtype = f64 if x.dtype is f64 else f32
    axes = zip(x.shape[x.ndim - len(outputs) :], outputs, scales)
    by_axis = [taps(Axis(size, out, aligned, scale, dtype)) for size, out, scale in axes]
    if all(tap.weight is None for found in by_axis for tap in found):
        return x
    return cast(Grid(x, tuple(outputs), by_axis).total(), x.dtype)
