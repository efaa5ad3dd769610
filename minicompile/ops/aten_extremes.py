"""The larger, the smaller, and values kept within bounds. NaN wins, except in fmax and fmin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from minicompile.errors import NotNative
from minicompile.ir.types import bool_
from minicompile.ops import elementwise as el
from minicompile.ops.build import Handle
from minicompile.ops.promote import Operand, arithmetic, common_dtype, like
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import bools, floats, ints

Number: TypeAlias = "bool | int | float"

PAIRS = [sample(floats(3, 4), floats(4)), sample(ints(9), ints(9)), sample(ints(4), floats(4))]


@composite("maximum", samples=[*PAIRS, sample(bools(3), bools(3))])
def maximum(self: Operand, other: Operand) -> Handle:
    """The larger of the two; NaN if either is."""
    return arithmetic(el.maximum, self, other)


@composite("minimum", samples=[*PAIRS, sample(bools(3), bools(3))])
def minimum(self: Operand, other: Operand) -> Handle:
    """The smaller of the two; NaN if either is."""
    return arithmetic(el.minimum, self, other)


def _ignoring_nan(extreme: Callable[..., Handle]) -> Callable[..., Handle]:
    """The same, where a number beats NaN."""

    def formula(a: Handle, b: Handle) -> Handle:
        if not a.dtype.is_float:
            return extreme(a, b)
        return el.where(el.isnan(a), b, el.where(el.isnan(b), a, extreme(a, b)))

    return formula


@composite("fmax", samples=PAIRS)
def fmax(self: Handle, other: Handle) -> Handle:
    """The larger of the two; NaN only if both are."""
    return arithmetic(_ignoring_nan(el.maximum), self, other)


@composite("fmin", samples=PAIRS)
def fmin(self: Handle, other: Handle) -> Handle:
    """The smaller of the two; NaN only if both are."""
    return arithmetic(_ignoring_nan(el.minimum), self, other)


@composite(
    "clamp", "clamp.Tensor",
    samples=[
        sample(floats(3, 4), -0.5, 0.5),
        sample(floats(5), None, 0.0),
        sample(floats(5), 1.0, -1.0),
        sample(ints(9), -1, 2),
        sample(ints(9), 0.5),
        sample(floats(3, 4), floats(4), floats(3, 1)),
        sample(floats(4), None, ints(4)),
    ],
)  # fmt: skip
def clamp(self: Handle, min: Operand | None = None, max: Operand | None = None) -> Handle:
    """self kept within min ... max; max wins where they cross, and NaN wins everywhere."""
    if min is None and max is None:
        raise NotNative("clamp without bounds raises in PyTorch")
    bounds = tuple(b for b in (min, max) if b is not None)
    if common_dtype(self, *bounds) is bool_ and not isinstance(bounds[0], Handle):
        raise NotNative("PyTorch raises for bools between numbers")

    def formula(x: Handle, *bounds: Handle | Number) -> Handle:
        x = x if min is None else at_least(x, bounds[0])
        return x if max is None else at_most(x, bounds[-1])

    return arithmetic(formula, self, *bounds)


def at_least(x: Handle, low: Handle | Number) -> Handle:
    """maximum(x, low); a number gives way to an equal x, so that -0.0 stays, and NaN stays as well."""
    if isinstance(low, Handle):
        return el.maximum(x, low)
    return like(x, low) if low != low else el.where(x < low, low, x)


def at_most(x: Handle, high: Handle | Number) -> Handle:
    """minimum(x, high), as `at_least`."""
    if isinstance(high, Handle):
        return el.minimum(x, high)
    return like(x, high) if high != high else el.where(x > high, high, x)


@composite(
    "clamp_min", "clamp_min.Tensor",
    samples=[sample(floats(5), 0.5), sample(ints(9), 0), sample(floats(3, 4), floats(4))],
)  # fmt: skip
def clamp_min(self: Handle, min: Operand) -> Handle:
    """maximum(self, min)."""
    return clamp(self, min)


@composite(
    "clamp_max", "clamp_max.Tensor",
    samples=[sample(floats(5), 0.5), sample(ints(9), 0), sample(floats(3, 4), floats(4))],
)  # fmt: skip
def clamp_max(self: Handle, max: Operand) -> Handle:
    """minimum(self, max)."""
    return clamp(self, None, max)
