"""Padding: with a constant, by reflection, by replication, circular."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicompile.ops.axes import cut, expanded, joined, margined
from minicompile.ops.build import Handle, emit
from minicompile.ops.promote import number
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats


def by_axis(x: Handle, padding: Sequence[int]) -> dict[int, tuple[int, int]]:
    """PyTorch's (low, high) pairs, which start at the last axis, by axis."""
    pairs = zip(padding[::2], padding[1::2])
    return {x.ndim - 1 - k: (low, high) for k, (low, high) in enumerate(pairs)}


@composite(
    "constant_pad_nd",
    samples=[sample(floats(2, 3), (1, 2, 0, 1), 7.5), sample(floats(4, 5), (-1, 2, 3, -2))],
)
def constant_pad_nd(self: Handle, pad: Sequence[int], value: Any = 0) -> Handle:
    """Margins filled with a constant, from the last axis on; negative ones cut away."""
    return margined(self, by_axis(self, pad), number(value, self.dtype))


def _cropped(x: Handle, d: int, low: int, high: int) -> tuple[Handle, int, int]:
    """Negative margins cut away: (what is left, low, high), both at least 0."""
    x = cut(x, d, max(-low, 0), x.shape[d] - max(-high, 0))
    return x, max(low, 0), max(high, 0)


@composite("reflection_pad1d", samples=[sample(floats(2, 5), (2, 3))])
@composite("reflection_pad2d", samples=[sample(floats(2, 4, 5), (2, 3, 1, 0))])
@composite("reflection_pad3d", samples=[sample(floats(2, 3, 4, 5), (2, 3, 1, 0, 0, 1))])
def reflection_pad(self: Handle, padding: Sequence[int]) -> Handle:
    """Margins that mirror the tensor about its edge elements, which are not repeated."""
    x = self
    for d, (low, high) in by_axis(self, padding).items():
        x, low, high = _cropped(x, d, low, high)
        n = x.shape[d]
        before, after = cut(x, d, 1, low + 1), cut(x, d, n - 1 - high, n - 1)
        x = joined([emit("flip", before, dims=(d,)), x, emit("flip", after, dims=(d,))], d)
    return x


@composite("replication_pad1d", samples=[sample(floats(2, 5), (2, 3))])
@composite("replication_pad2d", samples=[sample(floats(2, 4, 5), (2, 3, 1, 0))])
@composite("replication_pad3d", samples=[sample(floats(2, 3, 4, 5), (2, 3, 1, 0, 0, 1))])
def replication_pad(self: Handle, padding: Sequence[int]) -> Handle:
    """Margins that repeat the edge elements: ``result[j] = x[clamp(j - low, 0, n - 1)]``."""
    x = self
    for d, (low, high) in by_axis(self, padding).items():
        n = x.shape[d]
        size, start = n + low + high, min(max(-low, 0), n)
        before, after = min(max(low, 0), size), min(max(high, 0), size)
        inner = cut(x, d, start, start + size - before - after)
        ends = (_repeated(cut(x, d, 0, 1), d, before), _repeated(cut(x, d, n - 1, n), d, after))
        x = joined([ends[0], inner, ends[1]], d)
    return x


def _repeated(x: Handle, d: int, n: int) -> Handle:
    """Axis d of size 1 becomes size n."""
    return expanded(x, [n if k == d else m for k, m in enumerate(x.shape)])


@composite("_pad_circular", samples=[sample(floats(1, 2, 4, 5), (2, 3, 1, 0))])
def pad_circular(self: Handle, pad: Sequence[int]) -> Handle:
    """Margins that go on at the opposite edge."""
    x = self
    for d, (low, high) in by_axis(self, pad).items():
        x, low, high = _cropped(x, d, low, high)
        n = x.shape[d]
        x = joined([cut(x, d, n - low, n), x, cut(x, d, 0, high)], d)
    return x
