"""The identity matrix, and the triangles of a matrix: masks made of row and column numbers."""

from __future__ import annotations

from minicompile.ir.types import DType, bool_
from minicompile.ops import elementwise as el
from minicompile.ops.aten_creation import Options, plain
from minicompile.ops.build import Handle
from minicompile.ops.creation import iota
from minicompile.ops.promote import cast, default_float, number, widened
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import bools, floats, ints


@composite("eye", samples=[sample(3), sample(2, dtype=bool_)])
def eye(n: int, dtype: DType | None = None, **options: Options) -> Handle:
    """1 on the diagonal, 0 elsewhere."""
    return eye_of(n, n, dtype, **options)


@composite("eye.m", samples=[sample(3, 5), sample(4, 0)])
def eye_of(n: int, m: int, dtype: DType | None = None, **options: Options) -> Handle:
    """1 on the diagonal of n rows and m columns, 0 elsewhere."""
    plain(options)
    return cast(
        el.eq(iota(shape=(n, m), dim=0), iota(shape=(n, m), dim=1)), dtype or default_float()
    )


def _diagonal(x: Handle) -> Handle:
    """column - row, for the last two axes of x."""
    return iota(shape=x.shape, dim=x.ndim - 1) - iota(shape=x.shape, dim=x.ndim - 2)


def _masked(x: Handle, keep: Handle) -> Handle:
    wide = widened(x)
    return cast(el.where(keep, wide, number(0, wide.dtype)), x.dtype)


TRIANGLES = [sample(floats(3, 4)), sample(ints(2, 3, 3), 1), sample(bools(4, 4), -1)]


@composite("tril", samples=TRIANGLES)
def tril(self: Handle, diagonal: int = 0) -> Handle:
    """self on and below a diagonal, 0 above it."""
    return _masked(self, _diagonal(self) <= diagonal)


@composite("triu", samples=TRIANGLES)
def triu(self: Handle, diagonal: int = 0) -> Handle:
    """self on and above a diagonal, 0 below it."""
    return _masked(self, _diagonal(self) >= diagonal)
