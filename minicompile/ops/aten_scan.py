"""Running sums, products and extremes along an axis."""

from __future__ import annotations

from minicompile.ir.types import DType, bool_, f32, f64, i64, u8
from minicompile.ops import elementwise as el
from minicompile.ops.aten_reduction import accumulated
from minicompile.ops.axes import axis, counting
from minicompile.ops.build import Handle
from minicompile.ops.promote import cast, constant, widened
from minicompile.ops.reduction import scan_max, scan_min, scan_prod, scan_sum
from minicompile.ops.registry import Emitter, composite, sample
from minicompile.ops.samples import bools, floats, ints

SAMPLES = [
    sample(floats(3, 4), 1),
    sample(floats(3, 4), -2),
    sample(ints(9), 0),
    sample(bools(9), 0),
    sample(floats(), 0),
    sample(floats(0, 3), 0),
]


def _running(primitive: Emitter, x: Handle, dim: int, dtype: DType | None) -> Handle:
    """A running sum or product; f32 accumulates in f64, as eager's kernel does (acc_type)."""
    result, d = accumulated(x, dtype), axis(dim, x.ndim)
    wide = cast(x, result)
    if not x.ndim:
        return wide
    wide = cast(wide, f64) if result is f32 else widened(wide)
    return cast(primitive(wide, dim=d), result)


@composite("cumsum", samples=SAMPLES)
def cumsum(self: Handle, dim: int, dtype: DType | None = None) -> Handle:
    """The running sum along an axis; integers and bools add up in i64."""
    return _running(scan_sum, self, dim, dtype)


@composite("cumprod", samples=SAMPLES)
def cumprod(self: Handle, dim: int, dtype: DType | None = None) -> Handle:
    """The running product along an axis."""
    return _running(scan_prod, self, dim, dtype)


def _running_extreme(primitive: Emitter, x: Handle, dim: int) -> tuple[Handle, Handle]:
    """(running extreme, index of its last occurrence so far); after a NaN, the last NaN.

    The index moves on wherever x equals the running extreme, or is NaN.
    """
    d = axis(dim, x.ndim)
    if not x.ndim:
        return x, constant(0, i64)
    if x.dtype is bool_:
        values, indices = _running_extreme(primitive, cast(x, u8), d)
        return cast(values, bool_), indices
    wide = widened(x)
    best = primitive(wide, dim=d)
    moves = el.eq(wide, best)
    if wide.dtype.is_float:
        moves = moves | el.isnan(wide)
    places = el.where(moves, counting(x.shape, d), 0)
    return cast(best, x.dtype), scan_max(places, dim=d)


@composite("cummax", samples=SAMPLES[:5])
def cummax(self: Handle, dim: int) -> tuple[Handle, Handle]:
    """(running maximum, its index) along an axis; NaN wins and stays."""
    return _running_extreme(scan_max, self, dim)


@composite("cummin", samples=SAMPLES[:5])
def cummin(self: Handle, dim: int) -> tuple[Handle, Handle]:
    """(running minimum, its index) along an axis; NaN wins and stays."""
    return _running_extreme(scan_min, self, dim)
