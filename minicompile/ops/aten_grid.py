"""Sampling images at computed places: grid_sampler_2d, affine_grid_generator, max_unpool.

Places outside of the image count as zero, or are brought back to the border, or mirrored at it.
Source: aten/src/ATen/native/GridSamplerUtils.h.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence

from minicompile.errors import NotNative
from minicompile.ir.types import i64
from minicompile.ops.aten_scatter import scatter_src
from minicompile.ops.axes import along, counting, cut, dropped, filled, moved, reshaped
from minicompile.ops.build import Handle, emit
from minicompile.ops.elementwise import abs as absolute
from minicompile.ops.elementwise import floor, fmod, ge, le, maximum, minimum, where
from minicompile.ops.elementwise import round as rounded
from minicompile.ops.promote import cast, widened
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats, ints

BILINEAR, NEAREST = 0, 1
ZEROS, BORDER, REFLECTION = 0, 1, 2


def _mirrored(place: Handle, low: float, high: float) -> Handle:
    """A place reflected at low and high until it lies between them."""
    span = high - low
    if span == 0:
        return place * 0.0
    away = absolute(place - low)
    rest, flips = fmod(away, span), floor(away / span)
    even = fmod(flips, 2.0) < 1.0
    return where(even, rest + low, (span + low) - rest)


def _places(x: Handle, size: int, padding: int, aligned: bool) -> Handle:
    """Grid coordinates -1 ... 1 as places 0 ... size-1 of an axis, after padding."""
    place = (x + 1.0) / 2.0 * float(size - 1) if aligned else ((x + 1.0) * float(size) - 1.0) / 2.0
    if padding == REFLECTION:
        ends = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
        place = _mirrored(place, *ends)
    if padding != ZEROS:
        place = minimum(maximum(place, 0.0), float(size - 1))
    return place


class Sampler:
    """An image [N, C, H, W] read at places that are tensors [N, Y, X]."""

    def __init__(self, image: Handle, shape: tuple[int, ...]) -> None:
        self.image, self.batch = image, counting(shape, 0)

    def read(self, y: Handle, x: Handle) -> Handle:
        """[N, C, Y, X]: the elements at whole-numbered places (floats); 0 outside of the image."""
        height, width = self.image.shape[2:]
        inside = self._within(y, height) & self._within(x, width)
        at = [self._index(y, height), self._index(x, width)]
        values = emit("gather", self.image, self.batch, *at, dims=(0, 2, 3))
        values = moved(values, (3,), (1,))
        return where(self.spread(inside, values), widened(values), 0.0)

    def mixed(self, y: Handle, x: Handle) -> Handle:
        """The four elements around each place, weighed by how near they are."""
        left, top = floor(x), floor(y)
        right, bottom = left + 1.0, top + 1.0
        rows = ((top, bottom - y), (bottom, y - top))
        columns = ((left, right - x), (right, x - left))
        terms = []
        for (row, weight_y), (column, weight_x) in itertools.product(rows, columns):
            values = self.read(row, column)
            terms.append(values * self.spread(weight_x * weight_y, values))
        return functools.reduce(operator.add, terms)

    def _within(self, place: Handle, size: int) -> Handle:
        return ge(place, 0.0) & le(place, float(size - 1))

    def _index(self, place: Handle, size: int) -> Handle:
        """A place as an index that can be read, whatever it is."""
        return cast(
            minimum(maximum(where(self._within(place, size), place, 0.0), 0.0), size - 1.0), i64
        )

    def spread(self, v: Handle, like: Handle) -> Handle:
        """[N, Y, X] repeated over the channels."""
        return emit("broadcast", v, shape=like.shape, dims=(0, 2, 3))


_GRID = floats(2, 5, 6, 2, low=-1.3, high=1.3)
_IMAGE = floats(2, 3, 4, 7)


@composite(
    "grid_sampler_2d",
    samples=[
        sample(_IMAGE, _GRID, mode, padding, aligned)
        for mode in (BILINEAR, NEAREST)
        for padding in (ZEROS, BORDER, REFLECTION)
        for aligned in (False, True)
    ],
)
def grid_sampler_2d(
    input: Handle, grid: Handle, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Handle:
    """input [N, C, H, W] at the places grid [N, Y, X, (x, y)], which run from -1 to 1: [N, C, Y, X]."""
    if interpolation_mode not in (BILINEAR, NEAREST):
        raise NotNative("bicubic grid sampling")
    if input.dtype.bytes == 2:
        raise NotNative("grid sampling in half floats, where PyTorch rounds the places themselves")
    x, y = (dropped(cut(widened(grid), 3, k, k + 1), 3) for k in (0, 1))
    x = _places(x, input.shape[3], padding_mode, align_corners)
    y = _places(y, input.shape[2], padding_mode, align_corners)
    image = Sampler(input, x.shape)
    out = image.read(rounded(y), rounded(x)) if interpolation_mode == NEAREST else image.mixed(y, x)
    return cast(out, input.dtype)


@composite(
    "affine_grid_generator",
    samples=[sample(floats(2, 2, 3), (2, 3, 4, 5), a) for a in (False, True)],
)
def affine_grid_generator(theta: Handle, size: Sequence[int], align_corners: bool) -> Handle:
    """The grid of an affine map theta [N, 2, 3]: ``theta @ (x, y, 1)`` for places from -1 to 1."""
    if len(size) != 4:
        raise NotNative("affine grids of volumes")
    if not theta.dtype.is_float:
        raise NotNative("affine grids of integers")
    n, _, height, width = size
    t = widened(theta)
    shape = (n, height, width, 2)

    def line(steps: int) -> Handle:
        k = cast(counting((steps,), 0), t.dtype)
        if align_corners:
            return k * (2.0 / (steps - 1)) - 1.0 if steps > 1 else k * 0.0
        return (k * 2.0 + 1.0) / float(steps) - 1.0

    def column(k: int) -> Handle:
        return emit("broadcast", dropped(cut(t, 2, k, k + 1), 2), shape=shape, dims=(0, 3))

    x, y = along(line(width), 2, shape), along(line(height), 1, shape)
    return cast(x * column(0) + y * column(1) + column(2), theta.dtype)


@composite("max_unpool2d", samples=[sample(floats(2, 2, 2), ints(2, 2, 2, low=0, high=3), (3, 4))])
def max_unpool2d(self: Handle, indices: Handle, output_size: Sequence[int]) -> Handle:
    """Zeros with the elements of self at flat positions of the last two axes."""
    lead, area = self.shape[:-2], math.prod(output_size)
    zeros = filled((*lead, area), 0, self.dtype)
    flat = (*lead, math.prod(self.shape[-2:]))
    out = scatter_src(zeros, -1, reshaped(indices, flat), reshaped(self, flat))
    return reshaped(out, (*lead, *output_size))
