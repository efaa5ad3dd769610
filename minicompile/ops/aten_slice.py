"""Parts of tensors: slice, select, narrow, split, unbind, diagonal, unfold; and writing parts back."""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.ir.types import bool_
from minicompile.ops.axes import (
    axis,
    chosen,
    cut,
    dropped,
    expanded,
    filled,
    inserted,
    joined,
    margined,
    stuffed,
)
from minicompile.ops.build import Handle, emit
from minicompile.ops.promote import cast
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats

LAST = 2**63 - 1  # what the schema's `end` is when it is left out


def clamped(start: int | None, end: int | None, n: int) -> tuple[int, int]:
    """Python's slice limits for an axis of size n, as 0 <= start <= stop <= n."""
    a, b, _ = slice(start, end).indices(n)
    return a, max(a, b)


_SLICE = [
    sample(floats(5, 6), 1, 1, LAST, 2),
    sample(floats(5), 0, -3, -1),
    sample(floats(4), 0, 3, 1),
]


@composite("slice.Tensor", "slice_copy.Tensor", samples=_SLICE)
def slice_(
    self: Handle, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Handle:
    """``x[..., start:end:step, ...]`` along one axis, with Python's rules for the limits."""
    d = axis(dim, self.ndim)
    return cut(self, d, *clamped(start, end, self.shape[d]), step)


@composite("select.int", "select_copy.int", samples=[sample(floats(3, 4), 1, -2)])
def select(self: Handle, dim: int, index: int) -> Handle:
    """One position of an axis; the axis disappears."""
    d = axis(dim, self.ndim)
    i = axis(index, self.shape[d])
    return dropped(cut(self, d, i, i + 1), d)


@composite(
    "narrow", "narrow_copy", samples=[sample(floats(3, 4), -1, 1, 2), sample(floats(3), 0, -2, 2)]
)
def narrow(self: Handle, dim: int, start: int, length: int) -> Handle:
    """`length` positions of an axis, from `start`."""
    d = axis(dim, self.ndim)
    a = start + self.shape[d] if start < 0 else start
    return cut(self, d, a, a + length)


def pieces(x: Handle, lengths: Sequence[int], dim: int) -> tuple[Handle, ...]:
    """Consecutive parts of an axis, of these lengths."""
    out, start = [], 0
    for n in lengths:
        out.append(cut(x, dim, start, start + n))
        start += n
    return tuple(out)


_SPLITS = ("split.Tensor", "unsafe_split.Tensor", "split_copy.Tensor")


@composite(*_SPLITS, samples=[sample(floats(7, 2), 3), sample(floats(2, 4), 2, -1)])
def split(self: Handle, split_size: int, dim: int = 0) -> tuple[Handle, ...]:
    """Parts of `split_size` along an axis; the last one may be smaller."""
    d = axis(dim, self.ndim)
    n = self.shape[d]
    starts = range(0, n, split_size) if n else [0]
    return pieces(self, [min(split_size, n - a) for a in starts], d)


_SIZED = ("split_with_sizes", "split.sizes", "unsafe_split_with_sizes", "split_with_sizes_copy")


@composite(*_SIZED, samples=[sample(floats(7, 2), (3, 0, 4)), sample(floats(2, 4), (1, 3), -1)])
def split_with_sizes(self: Handle, split_sizes: Sequence[int], dim: int = 0) -> tuple[Handle, ...]:
    """Parts of these sizes along an axis."""
    return pieces(self, split_sizes, axis(dim, self.ndim))


@composite("chunk", "unsafe_chunk", samples=[sample(floats(7, 2), 3), sample(floats(2, 5), 4, 1)])
def chunk(self: Handle, chunks: int, dim: int = 0) -> tuple[Handle, ...]:
    """At most `chunks` parts of equal size along an axis; the last one may be smaller."""
    d = axis(dim, self.ndim)
    n = self.shape[d]
    if n == 0:
        return (self,) * chunks
    return split(self, -(-n // chunks), d)


@composite("tensor_split.sections", samples=[sample(floats(7, 2), 3)])
def tensor_split(self: Handle, sections: int, dim: int = 0) -> tuple[Handle, ...]:
    """`sections` parts along an axis; the first ones are larger by one where it does not divide."""
    d = axis(dim, self.ndim)
    each, more = divmod(self.shape[d], sections)
    return pieces(self, [each + (k < more) for k in range(sections)], d)


@composite("tensor_split.indices", samples=[sample(floats(7, 2), (2, 5, -1))])
def tensor_split_at(self: Handle, indices: Sequence[int], dim: int = 0) -> tuple[Handle, ...]:
    """The parts of an axis between these positions."""
    d = axis(dim, self.ndim)
    limits = zip((0, *indices), (*indices, None))
    return tuple(cut(self, d, *clamped(a, b, self.shape[d])) for a, b in limits)


@composite(
    "unbind.int", "unbind_copy.int", samples=[sample(floats(3, 2), 0), sample(floats(3, 2), -1)]
)
def unbind(self: Handle, dim: int = 0) -> tuple[Handle, ...]:
    """Every position of an axis, which disappears."""
    return tuple(select(self, dim, i) for i in range(self.shape[axis(dim, self.ndim)]))


@composite(
    "unfold", "unfold_copy", samples=[sample(floats(2, 7), -1, 3, 2), sample(floats(), 0, 1, 1)]
)
def unfold(self: Handle, dimension: int, size: int, step: int) -> Handle:
    """Windows of `size` every `step` positions of an axis; they form a new last axis."""
    x = inserted(self, 0) if self.ndim == 0 else self
    d = axis(dimension, x.ndim)
    if size == 0:
        shape = list(x.shape)
        shape[d] = shape[d] // step + 1
        return filled((*shape, 0), 0, x.dtype)
    x = emit("window", x, dims=(d,), sizes=(size,), strides=(step,), dilations=(1,))
    return dropped(x, 0) if self.ndim == 0 else x


@composite("select_scatter", samples=[sample(floats(3, 4), floats(3), 1, -1)])
def select_scatter(self: Handle, src: Handle, dim: int, index: int) -> Handle:
    """A copy of self in which one position of an axis is src."""
    d = axis(dim, self.ndim)
    i = axis(index, self.shape[d])
    return _replaced(self, inserted(src, d), d, i, i + 1)


def _replaced(x: Handle, src: Handle, d: int, start: int, stop: int) -> Handle:
    """x with start ... stop-1 of axis d taken from src."""
    src = cast(expanded(src, (*x.shape[:d], stop - start, *x.shape[d + 1 :])), x.dtype)
    return joined([cut(x, d, 0, start), src, cut(x, d, stop, x.shape[d])], d)


_SCATTER = [
    sample(floats(3, 6), floats(3, 2), 1, 1, 3),
    sample(floats(6), floats(2), 0, 1, 5, 2),
    sample(floats(6, 2), floats(6, 2), 0),
]


@composite("slice_scatter", samples=_SCATTER)
def slice_scatter(
    self: Handle,
    src: Handle,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Handle:
    """A copy of self in which ``[start:end:step]`` of an axis is src."""
    d = axis(dim, self.ndim)
    n = self.shape[d]
    a, b = clamped(start, end, n)
    if step == 1 or a == b:
        return _replaced(self, src, d, a, b)
    count = -(-(b - a) // step)
    src = cast(expanded(src, (*self.shape[:d], count, *self.shape[d + 1 :])), self.dtype)
    margins = {d: (a, n - a - count * step)}
    values = margined(stuffed(src, d, step, 0), margins, 0)
    hit = margined(stuffed(filled(src.shape, True, bool_), d, step, False), margins, False)
    return chosen(hit, values, self)
