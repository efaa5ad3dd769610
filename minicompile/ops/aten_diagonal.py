"""Diagonals: reading one, writing one, and matrices made of one."""

from __future__ import annotations

from minicompile.ops.axes import (
    axis,
    chosen,
    counting,
    cut,
    filled,
    margined,
    moved,
    reshaped,
    spread,
)
from minicompile.ops.build import Handle
from minicompile.ops.elementwise import eq
from minicompile.ops.promote import cast
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats

_DIAGONALS = [
    sample(floats(3, 4)),
    sample(floats(3, 4), -1),
    sample(floats(2, 3, 4), 2, 1, -1),
    sample(floats(2, 3), 5),
]


@composite("diagonal", "diagonal_copy", samples=_DIAGONALS)
def diagonal(self: Handle, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Handle:
    """The elements whose positions in two axes differ by `offset`, as a new last axis.

    In the flattened plane of the two axes (R, C) they lie C + 1 apart.
    """
    a, b = axis(dim1, self.ndim), axis(dim2, self.ndim)
    x = moved(self, (a, b), (self.ndim - 2, self.ndim - 1))
    *lead, rows, columns = x.shape
    low = max(-offset, 0)
    n = max(min(rows - low, columns - max(offset, 0)), 0)
    start = low * columns + max(offset, 0)
    flat = reshaped(x, (*lead, rows * columns))
    if n == 0:
        return cut(flat, len(lead), 0, 0)
    return cut(flat, len(lead), start, start + (n - 1) * (columns + 1) + 1, columns + 1)


@composite(
    "diagonal_scatter",
    samples=[sample(floats(3, 4), floats(3)), sample(floats(3, 2, 4), floats(2, 2), -1, 0, 2)],
)
def diagonal_scatter(
    self: Handle, src: Handle, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Handle:
    """A copy of self in which `diagonal(self, offset, dim1, dim2)` is src."""
    ends = (self.ndim - 2, self.ndim - 1)
    pair = (axis(dim1, self.ndim), axis(dim2, self.ndim))
    x = moved(self, pair, ends)
    rows, low, n = x.shape[-2], max(-offset, 0), src.shape[-1]
    src = margined(cast(src, x.dtype), {src.ndim - 1: (low, rows - low - n)}, 0)
    hit = eq(counting(x.shape, ends[1]) - counting(x.shape, ends[0]), offset)
    return moved(chosen(hit, spread(src, ends[1:], x.shape), x), ends, pair)


@composite(
    "diag_embed",
    samples=[sample(floats(2, 3)), sample(floats(3), 1), sample(floats(2, 3), -1, 0, 2)],
)
def diag_embed(self: Handle, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Handle:
    """Square matrices, in two new axes, with the last axis of self as a diagonal and zeros elsewhere."""
    side = self.shape[-1] + abs(offset)
    zeros = filled((*self.shape[:-1], side, side), 0, self.dtype)
    ends, n = (self.ndim - 1, self.ndim), self.ndim + 1
    return moved(diagonal_scatter(zeros, self, offset, *ends), ends, (axis(dim1, n), axis(dim2, n)))
