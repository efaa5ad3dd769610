"""Writing at places given by index tensors or masks: index_put, put, masked_scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence

from minicompile.errors import NotNative
from minicompile.ir.types import i64
from minicompile.ops.aten_index import from_front, subscripts
from minicompile.ops.aten_scatter import scattered
from minicompile.ops.axes import chosen, moved, reshaped
from minicompile.ops.build import Handle, broadcast_all, broadcast_to, emit
from minicompile.ops.elementwise import maximum
from minicompile.ops.promote import cast
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import bools, floats, ints

_PUT = [
    sample(floats(3, 4), (ints(2, low=-3, high=3),), floats(2, 4)),
    sample(
        floats(3, 4, 5), (None, ints(2, low=0, high=4), ints(2, low=0, high=5)), floats(1), True
    ),
    sample(
        floats(3, 4, 5), (ints(2, low=0, high=3), None, ints(2, low=0, high=5)), floats(2, 4), True
    ),
]


@composite("index_put", "_unsafe_index_put", samples=_PUT)
def index_put(
    self: Handle, indices: Sequence[Handle | None], values: Handle, accumulate: bool = False
) -> Handle:
    """A copy of self with ``self[indices] = values`` (or ``+=``); None addresses a whole axis.

    A mask as the only index is a `where`.
    """
    real = [i for i in indices if i is not None]
    if len(real) == 1 and real[0].dtype.kind == "b" and values.ndim == 0 and not accumulate:
        return _masked(self, indices, values)
    found, dims = subscripts(self, indices)
    n, first, x = found[0].ndim, dims[0], self
    rest = [m for d, m in enumerate(x.shape) if d not in dims]
    if dims == list(range(first, first + len(dims))):  # the values' axes lie as in `index`
        shape = (*rest[:first], *found[0].shape, *rest[first:])
        source = moved(broadcast_to(values, shape), range(first, first + n), range(n))
    else:
        source = broadcast_to(values, (*found[0].shape, *rest))
    return scattered(x, cast(source, x.dtype), found, dims, "add" if accumulate else "set")


def _masked(x: Handle, indices: Sequence[Handle | None], value: Handle) -> Handle:
    """``x[mask] = value``: the mask covers the axes from its place in `indices` on."""
    first = next(d for d, i in enumerate(indices) if i is not None)
    mask = indices[first]
    assert mask is not None
    dims = tuple(range(first, first + mask.ndim))
    hit = emit("broadcast", mask, shape=x.shape, dims=dims)
    return chosen(hit, broadcast_to(cast(value, x.dtype), x.shape), x)


@composite("put", samples=[sample(floats(3, 4), ints(5, low=-12, high=12), floats(5), True)])
def put(self: Handle, index: Handle, source: Handle, accumulate: bool = False) -> Handle:
    """A copy of self with source put (or added) into places of the flat tensor."""
    n = math.prod(self.shape)
    at = reshaped(from_front(index, n), (math.prod(index.shape),))
    flat = scattered(
        reshaped(self, (n,)), reshaped(source, at.shape), [at], [0], "add" if accumulate else "set"
    )
    return reshaped(flat, self.shape)


@composite("masked_scatter", samples=[sample(floats(3, 4), bools(4), floats(3, 4))])
def masked_scatter(self: Handle, mask: Handle, source: Handle) -> Handle:
    """A copy of self in which the elements under the mask are those of source, one after the other."""
    x, hit = broadcast_all(self, mask)
    n = math.prod(x.shape)
    if not n or not math.prod(source.shape):
        raise NotNative("masked_scatter without elements")
    rank = emit("scan_sum", cast(reshaped(hit, (n,)), i64), dim=0)
    flat = reshaped(source, (math.prod(source.shape),))
    values = emit("gather", flat, maximum(rank - 1, 0), dims=(0,))
    return chosen(hit, reshaped(values, x.shape), x)
