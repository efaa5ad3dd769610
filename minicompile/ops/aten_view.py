"""Views that keep every element: reshape, permute, expand, squeeze and their kin.

At this level a view and a copy are one thing: values have no strides, and functionalization has made
aliasing explicit before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from minicompile.ops.axes import (
    axes,
    axis,
    dropped,
    expanded,
    inserted,
    moved,
    permuted,
    reshaped,
    swapped,
)
from minicompile.ops.build import Handle, broadcast_to
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats


def sizes(x: Handle, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape in which one -1 is inferred from the number of elements."""
    known = math.prod(n for n in shape if n != -1)
    missing = math.prod(x.shape) // known if known else 0
    return tuple(missing if n == -1 else n for n in shape)


_VIEWS = ("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy")


@composite(*_VIEWS, samples=[sample(floats(2, 6), (3, -1)), sample(floats(), (1, 1))])
def view(self: Handle, size: Sequence[int]) -> Handle:
    """The same elements in row-major order; one size may be -1."""
    return reshaped(self, sizes(self, size))


@composite("_reshape_alias", samples=[sample(floats(2, 6), (3, 4), (4, 1))])
def reshape_alias(self: Handle, size: Sequence[int], stride: Sequence[int]) -> Handle:
    """`view` with the strides that the result has in eager; they follow from the shape."""
    return reshaped(self, size)


@composite("view_as", "reshape_as", samples=[sample(floats(2, 6), floats(3, 4))])
def view_as(self: Handle, other: Handle) -> Handle:
    """The elements of self in the shape of other."""
    return reshaped(self, other.shape)


@composite("flatten.using_ints", samples=[sample(floats(2, 3, 4), 1), sample(floats())])
def flatten(self: Handle, start_dim: int = 0, end_dim: int = -1) -> Handle:
    """The axes start_dim ... end_dim become one; a 0-d tensor gets one axis."""
    a, b = axis(start_dim, self.ndim), axis(end_dim, self.ndim)
    shape = self.shape
    return reshaped(self, (*shape[:a], math.prod(shape[a : b + 1]), *shape[b + 1 :]))


@composite("unflatten.int", samples=[sample(floats(2, 6), 1, (3, -1))])
def unflatten(self: Handle, dim: int, sizes: Sequence[int]) -> Handle:
    """One axis becomes several; one size may be -1."""
    d = axis(dim, self.ndim)
    rest = math.prod(n for n in sizes if n != -1)
    inner = tuple(self.shape[d] // rest if n == -1 else n for n in sizes)
    return reshaped(self, (*self.shape[:d], *inner, *self.shape[d + 1 :]))


@composite("ravel", samples=[sample(floats(2, 3))])
def ravel(self: Handle) -> Handle:
    """All elements in row-major order, as one axis."""
    return reshaped(self, (math.prod(self.shape),))


@composite("permute", "permute_copy", samples=[sample(floats(2, 3, 4), (2, 0, -2))])
def permute(self: Handle, dims: Sequence[int]) -> Handle:
    """Axis i of the result is axis dims[i]."""
    return permuted(self, [axis(d, self.ndim) for d in dims])


_SWAPS = ("transpose.int", "transpose_copy.int", "swapaxes", "swapdims")


@composite(*_SWAPS, samples=[sample(floats(2, 3, 4), 0, -1), sample(floats(), 0, -1)])
def transpose(self: Handle, dim0: int, dim1: int) -> Handle:
    """Two axes exchanged."""
    if self.ndim == 0:
        return self
    return swapped(self, axis(dim0, self.ndim), axis(dim1, self.ndim))


@composite("t", "t_copy", samples=[sample(floats(2, 3)), sample(floats(3)), sample(floats())])
def t(self: Handle) -> Handle:
    """The transpose of a matrix; vectors and 0-d tensors stay as they are."""
    return swapped(self, 0, 1) if self.ndim == 2 else self


@composite("numpy_T", samples=[sample(floats(2, 3))])
def numpy_t(self: Handle) -> Handle:
    """All axes in reverse order."""
    return permuted(self, range(self.ndim)[::-1])


@composite("mT", samples=[sample(floats(4, 2, 3))])
def matrix_transpose(self: Handle) -> Handle:
    """The last two axes exchanged."""
    return swapped(self, self.ndim - 2, self.ndim - 1)


@composite("movedim.int", "moveaxis.int", samples=[sample(floats(2, 3, 4), 0, -1)])
def movedim(self: Handle, source: int, destination: int) -> Handle:
    """Axis `source` becomes axis `destination`; the others keep their order."""
    return movedims(self, (source,), (destination,))


@composite(
    "movedim.intlist", "moveaxis.intlist", samples=[sample(floats(2, 3, 4, 5), (0, 1), (-1, 0))]
)
def movedims(self: Handle, source: Sequence[int], destination: Sequence[int]) -> Handle:
    """Axes source[i] become axes destination[i]; the others keep their order."""
    if not source or self.ndim == 0:
        return self
    return moved(self, axes(source, self.ndim), axes(destination, self.ndim))


@composite(
    "expand", "expand_copy", samples=[sample(floats(3, 1), (2, -1, 4)), sample(floats(), (2,))]
)
def expand(self: Handle, size: Sequence[int], *, implicit: bool = False) -> Handle:
    """Axes of size 1 repeated to `size`; -1 keeps a size; new axes come in front."""
    return expanded(self, size)


@composite("expand_as", samples=[sample(floats(3, 1), floats(2, 3, 4))])
def expand_as(self: Handle, other: Handle) -> Handle:
    """self seen with the shape of other."""
    return broadcast_to(self, other.shape)


@composite("unsqueeze", "unsqueeze_copy", samples=[sample(floats(2, 3), -1), sample(floats(), 0)])
def unsqueeze(self: Handle, dim: int) -> Handle:
    """A new axis of size 1 at place `dim` of the result."""
    return inserted(self, axis(dim, self.ndim + 1))


@composite("squeeze", "squeeze_copy", samples=[sample(floats(1, 2, 1)), sample(floats())])
def squeeze(self: Handle) -> Handle:
    """Without all axes of size 1."""
    return reshaped(self, [n for n in self.shape if n != 1])


@composite(
    "squeeze.dim", "squeeze_copy.dim", samples=[sample(floats(1, 2), 0), sample(floats(), 0)]
)
def squeeze_dim(self: Handle, dim: int) -> Handle:
    """Without axis `dim`, if its size is 1."""
    return squeeze_dims(self, (dim,))


@composite(
    "squeeze.dims",
    "squeeze_copy.dims",
    samples=[sample(floats(1, 2, 1), (0, 1)), sample(floats(1), ())],
)
def squeeze_dims(self: Handle, dim: Sequence[int]) -> Handle:
    """Without those of the axes `dim` that have size 1."""
    named = {axis(d, self.ndim) for d in dim}
    return dropped(self, *(d for d in named if d < self.ndim and self.shape[d] == 1))


@composite("alias", "alias_copy", "detach", "detach_copy", "lift", samples=[sample(floats(2, 3))])
def alias(self: Handle) -> Handle:
    """The same values."""
    return self
