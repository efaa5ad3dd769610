"""Tensors joined: cat, stack and their kin."""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.ir.types import promote
from minicompile.ops.axes import axis, filled, inserted, joined, margined, reshaped
from minicompile.ops.build import Handle
from minicompile.ops.promote import cast
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats, ints


@composite(
    "cat",
    "concat",
    "concatenate",
    samples=[
        sample((floats(2, 3), floats(2, 1)), 1),
        sample((floats(2, 3), ints(1, 3))),
        sample((floats(0), floats(2, 3)), -1),
    ],
)
def cat(tensors: Sequence[Handle], dim: int = 0) -> Handle:
    """One after the other along an axis, in their common dtype; tensors of shape (0,) are skipped."""
    dtype = promote(*(x.type for x in tensors))
    real = [x for x in tensors if x.shape != (0,)]
    if not real:
        return cast(tensors[0], dtype)
    return joined([cast(x, dtype) for x in real], axis(dim, real[0].ndim))


@composite("stack", samples=[sample((floats(2, 3), floats(2, 3)), -1), sample((floats(), ints()))])
def stack(tensors: Sequence[Handle], dim: int = 0) -> Handle:
    """One after the other along a new axis, in their common dtype."""
    d = axis(dim, tensors[0].ndim + 1)
    dtype = promote(*(x.type for x in tensors))
    return joined([inserted(cast(x, dtype), d) for x in tensors], d)


def _matrix(x: Handle) -> Handle:
    """Vectors as rows; more dimensions as they are."""
    return reshaped(x, (*(1,) * (2 - x.ndim), *x.shape))


@composite("hstack", samples=[sample((floats(2), floats(3))), sample((floats(2, 1), floats(2, 2)))])
def hstack(tensors: Sequence[Handle]) -> Handle:
    """Side by side: along axis 1, vectors along axis 0."""
    xs = [reshaped(x, x.shape or (1,)) for x in tensors]
    return cat(xs, 0 if xs[0].ndim == 1 else 1)


@composite("vstack", samples=[sample((floats(3), floats(2, 3)))])
def vstack(tensors: Sequence[Handle]) -> Handle:
    """Below each other: along axis 0; vectors are rows."""
    return cat([_matrix(x) for x in tensors], 0)


@composite("dstack", samples=[sample((floats(3), floats(3))), sample((floats(2, 3), floats(2, 3)))])
def dstack(tensors: Sequence[Handle]) -> Handle:
    """Behind each other: along axis 2."""
    planes = [_matrix(x) for x in tensors]
    return cat([reshaped(x, (*x.shape, *(1,) * (3 - x.ndim))) for x in planes], 2)


@composite("column_stack", samples=[sample((floats(3), floats(3, 2)))])
def column_stack(tensors: Sequence[Handle]) -> Handle:
    """Side by side along axis 1; vectors are columns."""
    return cat([reshaped(x, (*x.shape, *(1,) * (2 - x.ndim))) for x in tensors], 1)


@composite("block_diag", samples=[sample((floats(2, 3), floats(2), floats()))])
def block_diag(tensors: Sequence[Handle]) -> Handle:
    """Matrices down the diagonal, zeros elsewhere; vectors are rows."""
    dtype = promote(*(x.type for x in tensors))
    blocks = [_matrix(x) for x in tensors]
    width, before, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        after = width - before - x.shape[1]
        rows.append(margined(cast(x, dtype), {1: (before, after)}, 0))
        before += x.shape[1]
    return joined(rows, 0) if rows else filled((1, 0), 0, dtype)
