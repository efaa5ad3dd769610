"""The largest and the smallest element, and where it is. NaN wins, the first index wins.

Source of the semantics: aten/src/ATen/native/cpu/ReduceOpsKernel.cpp, TensorCompareKernel.cpp.
"""

from __future__ import annotations

from minicompile.errors import NotNative
from minicompile.ir.types import bool_, i64
from minicompile.ops.axes import axis, reshaped
from minicompile.ops.build import Handle
from minicompile.ops.promote import cast, constant, widened
from minicompile.ops.reducing import Dims, axes_of, count, extreme, kept, place_of_extreme
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import bools, floats, ints

WHOLE = [sample(floats(3, 4)), sample(ints(3, 4)), sample(bools(5)), sample(floats())]
OVER = [*WHOLE, sample(floats(3, 4, 2), (0, -1)), sample(ints(3, 4), (1,), True)]
ALONG = [
    sample(floats(3, 4), 1),
    sample(ints(3, 8), -1, True),
    sample(bools(3, 4), 0),
    sample(floats(), 0),
]


def _extreme(largest: bool, x: Handle, dims: Dims, keepdim: bool) -> Handle:
    found = axes_of(x, dims)
    if found and not count(x, found):
        raise NotNative("PyTorch raises for the extreme of no elements")
    return kept(cast(extreme(largest, widened(x), found), x.dtype), x, found, keepdim)


def _with_index(largest: bool, x: Handle, dim: int, keepdim: bool) -> tuple[Handle, Handle]:
    """(extreme, index) along an axis, both with the axis as size 1 if keepdim."""
    if not x.ndim:
        axis(dim, 0)
        return x, constant(0, i64)
    d = axis(dim, x.ndim)
    values, indices = place_of_extreme(largest, widened(x), d)
    return kept(cast(values, x.dtype), x, (d,), keepdim), kept(indices, x, (d,), keepdim)


def _index(largest: bool, x: Handle, dim: int | None, keepdim: bool) -> Handle:
    if x.dtype is bool_:
        raise NotNative("PyTorch has no argmax of bools")
    if dim is None:
        flat = _with_index(largest, reshaped(x, (count(x, axes_of(x, None)),)), 0, False)[1]
        return reshaped(flat, (1,) * x.ndim) if keepdim else flat
    return _with_index(largest, x, dim, keepdim)[1]


@composite("amax", samples=OVER)
def amax(self: Handle, dim: Dims = (), keepdim: bool = False) -> Handle:
    """The largest element over the axes `dim`; () means all."""
    return _extreme(True, self, dim, keepdim)


@composite("amin", samples=OVER)
def amin(self: Handle, dim: Dims = (), keepdim: bool = False) -> Handle:
    """The smallest element over the axes `dim`; () means all."""
    return _extreme(False, self, dim, keepdim)


@composite("max", samples=WHOLE)
def max_all(self: Handle) -> Handle:
    """The largest of all elements."""
    return _extreme(True, self, None, False)


@composite("min", samples=WHOLE)
def min_all(self: Handle) -> Handle:
    """The smallest of all elements."""
    return _extreme(False, self, None, False)


@composite("max.dim", samples=ALONG)
def max_along(self: Handle, dim: int, keepdim: bool = False) -> tuple[Handle, Handle]:
    """(largest element, its first index) along an axis."""
    return _with_index(True, self, dim, keepdim)


@composite("min.dim", samples=ALONG)
def min_along(self: Handle, dim: int, keepdim: bool = False) -> tuple[Handle, Handle]:
    """(smallest element, its first index) along an axis."""
    return _with_index(False, self, dim, keepdim)


PLACES = [sample(floats(3, 4)), sample(ints(30)), *ALONG[:2], ALONG[3], sample(floats())]


@composite("argmax", samples=[*PLACES, sample(floats(3, 4), None, True)])
def argmax(self: Handle, dim: int | None = None, keepdim: bool = False) -> Handle:
    """The first index of the largest element along an axis, or in row-major order."""
    return _index(True, self, dim, keepdim)


@composite("argmin", samples=[*PLACES, sample(floats(3, 4), None, True)])
def argmin(self: Handle, dim: int | None = None, keepdim: bool = False) -> Handle:
    """The first index of the smallest element along an axis, or in row-major order."""
    return _index(False, self, dim, keepdim)


@composite(
    "aminmax",
    samples=[sample(floats(3, 4)), sample(ints(3, 4), dim=1), sample(floats(2, 3), dim=0, keepdim=True)],
)  # fmt: skip
def aminmax(self: Handle, dim: int | None = None, keepdim: bool = False) -> tuple[Handle, Handle]:
    """(smallest, largest) element along an axis, or of all."""
    return _extreme(False, self, dim, keepdim), _extreme(True, self, dim, keepdim)
