"""Writing whole slices at computed places of one axis: index_add, index_copy, index_fill, index_reduce."""

from __future__ import annotations

import math
from typing import Any

from minicompile.ir.types import i64
from minicompile.ops.aten_index import from_front
from minicompile.ops.aten_scatter import combined, scattered
from minicompile.ops.axes import axis, expanded, moved, reshaped
from minicompile.ops.build import Handle
from minicompile.ops.promote import cast, constant, number, widened
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats, ints


def _rows(self: Handle, dim: int, index: Handle, source: Handle, combine: str) -> Handle:
    """Whole slices combined into the places `index` (a vector) of an axis."""
    index = cast(reshaped(index, index.shape or (1,)), i64)
    if self.ndim == 0:
        out = _rows(reshaped(self, (1,)), 0, index, reshaped(source, (1,)), combine)
        return reshaped(out, ())
    d = axis(dim, self.ndim)
    source = reshaped(source, (*self.shape[:d], index.shape[0], *self.shape[d + 1 :]))
    return scattered(self, moved(source, (d,), (0,)), [index], [d], combine)


_ROWS = [
    sample(floats(3, 4), 1, ints(2, low=0, high=4), floats(3, 2)),
    sample(floats(5), 0, ints(7, low=0, high=5), floats(7)),
]


@composite("index_add", samples=[*_ROWS, sample(*_ROWS[0].args, alpha=2)])
def index_add(self: Handle, dim: int, index: Handle, source: Handle, *, alpha: Any = 1) -> Handle:
    """A copy of self with ``alpha * source`` added to the places `index` of an axis."""
    if alpha != 1:
        wide = widened(source)
        source = cast(wide * number(alpha, wide.dtype), source.dtype)
    return _rows(self, dim, index, source, "add")


@composite("index_copy", samples=[sample(floats(3, 4), 0, ints(1, low=0, high=3), floats(1, 4))])
def index_copy(self: Handle, dim: int, index: Handle, source: Handle) -> Handle:
    """A copy of self in which the places `index` of an axis are those of source."""
    return _rows(self, dim, index, source, "set")


@composite(
    "index_reduce",
    samples=[
        sample(*_ROWS[0].args, "amax"),
        sample(*_ROWS[1].args, "prod"),
        sample(*_ROWS[1].args, "mean", include_self=False),
    ],
)
def index_reduce(
    self: Handle, dim: int, index: Handle, source: Handle, reduce: str, *, include_self: bool = True
) -> Handle:
    """A copy of self in which source is combined into the places `index` of an axis."""

    def put(x: Handle, values: Handle, combine: str) -> Handle:
        return _rows(x, dim, index, values, combine)

    return combined(self, source, reduce, include_self, put)


def _filled(self: Handle, dim: int, index: Handle, value: Handle) -> Handle:
    """A copy of self with a 0-d value at the places `index` of an axis, which may be negative."""
    shape = list(self.shape or (1,))
    d = axis(dim, self.ndim)
    places = from_front(index, shape[d])
    shape[d] = math.prod(index.shape)
    return _rows(self, dim, places, expanded(value, shape), "set")


@composite("index_fill.int_Scalar", samples=[sample(floats(3, 4), 1, ints(2, low=-4, high=4), 2.5)])
def index_fill(self: Handle, dim: int, index: Handle, value: Any) -> Handle:
    """A copy of self with a number at the places `index` of an axis, which may be negative."""
    return _filled(self, dim, index, constant(value, self.dtype))


@composite(
    "index_fill.int_Tensor", samples=[sample(floats(3, 4), 1, ints(2, low=0, high=4), floats())]
)
def index_fill_tensor(self: Handle, dim: int, index: Handle, value: Handle) -> Handle:
    """A copy of self with a 0-d tensor's value at the places `index` of an axis."""
    return _filled(self, dim, index, cast(value, self.dtype))
