"""Rearrangements: flips, rolls, repetitions and the shuffles between channels and pixels."""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.ops.aten_view import ravel
from minicompile.ops.axes import axes, axis, cut, joined, permuted, reshaped, swapped
from minicompile.ops.build import Handle, emit
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats


@composite("rot90", samples=[sample(floats(2, 3), k) for k in range(4)])
def rot90(self: Handle, k: int = 1, dims: Sequence[int] = (0, 1)) -> Handle:
    """Turned by k quarters in the plane of two axes, from the first towards the second."""
    a, b = axes(dims, self.ndim)
    backwards = ((), (b,), (a, b), (a,))[k % 4]
    x = emit("flip", self, dims=backwards) if backwards else self
    return swapped(x, a, b) if k % 2 else x


@composite("flip", samples=[sample(floats(2, 3), (0, -1)), sample(floats(), (0,))])
def flip(self: Handle, dims: Sequence[int]) -> Handle:
    """The axes `dims` read backwards."""
    found = tuple(axis(d, self.ndim) for d in dims)
    return emit("flip", self, dims=found) if found and self.ndim else self


@composite("fliplr", samples=[sample(floats(2, 3))])
def fliplr(self: Handle) -> Handle:
    """Axis 1 read backwards."""
    return emit("flip", self, dims=(1,))


@composite("flipud", samples=[sample(floats(2, 3))])
def flipud(self: Handle) -> Handle:
    """Axis 0 read backwards."""
    return emit("flip", self, dims=(0,))


@composite("pixel_shuffle", samples=[sample(floats(2, 8, 3, 2), 2)])
def pixel_shuffle(self: Handle, upscale_factor: int) -> Handle:
    """[..., C*r*r, H, W] -> [..., C, H*r, W*r]: channels become pixels."""
    *lead, c, h, w = self.shape
    r, n = upscale_factor, len(lead)
    x = reshaped(self, (*lead, c // (r * r), r, r, h, w))
    x = permuted(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshaped(x, (*lead, c // (r * r), h * r, w * r))


@composite("pixel_unshuffle", samples=[sample(floats(2, 2, 4, 6), 2)])
def pixel_unshuffle(self: Handle, downscale_factor: int) -> Handle:
    """[..., C, H*r, W*r] -> [..., C*r*r, H, W]: pixels become channels."""
    *lead, c, h, w = self.shape
    r, n = downscale_factor, len(lead)
    x = reshaped(self, (*lead, c, h // r, r, w // r, r))
    x = permuted(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshaped(x, (*lead, c * r * r, h // r, w // r))


@composite("channel_shuffle", "native_channel_shuffle", samples=[sample(floats(2, 6, 3), 2)])
def channel_shuffle(self: Handle, groups: int) -> Handle:
    """The channels (axis 1), seen as (groups, C/groups), in the transposed order."""
    n, c, *rest = self.shape
    x = reshaped(self, (n, groups, c // groups, *rest))
    return reshaped(swapped(x, 1, 2), self.shape)


@composite("repeat", "tile", samples=[sample(floats(2, 3), (2, 1, 2)), sample(floats(), (3,))])
def repeat(self: Handle, repeats: Sequence[int]) -> Handle:
    """The tensor laid side by side repeats[i] times along axis i; axes are added in front."""
    n = max(len(repeats), self.ndim)
    counts = (*(1,) * (n - len(repeats)), *repeats)
    shape = (*(1,) * (n - self.ndim), *self.shape)
    pairs = [m for pair in zip(counts, shape) for m in pair]
    x = emit("broadcast", reshaped(self, shape), shape=pairs, dims=tuple(range(1, 2 * n, 2)))
    return reshaped(x, [r * m for r, m in zip(counts, shape)])


@composite(
    "repeat_interleave.self_int",
    samples=[sample(floats(2, 3), 2, 1), sample(floats(2, 3), 2)],
)
def repeat_interleave(
    self: Handle, repeats: int, dim: int | None = None, *, output_size: int | None = None
) -> Handle:
    """Each element `repeats` times in a row, along an axis (None: of the flat tensor)."""
    x = ravel(self) if dim is None else self
    d = axis(dim or 0, x.ndim)
    shape = (*x.shape[: d + 1], repeats, *x.shape[d + 1 :])
    dims = tuple(k for k in range(x.ndim + 1) if k != d + 1)
    wide = emit("broadcast", x, shape=shape, dims=dims)
    return reshaped(wide, (*x.shape[:d], x.shape[d] * repeats, *x.shape[d + 1 :]))


@composite("roll", samples=[sample(floats(3, 4), (1, -1), (0, 1)), sample(floats(3, 4), (5,))])
def roll(self: Handle, shifts: int | Sequence[int], dims: int | Sequence[int] = ()) -> Handle:
    """Elements move up by `shifts` along `dims` and come in again at the other end (no dims: flat)."""
    shifts = (shifts,) if isinstance(shifts, int) else shifts
    dims = (dims,) if isinstance(dims, int) else dims
    if not dims:
        return reshaped(roll(ravel(self), shifts, (0,)), self.shape)
    x = self
    for shift, dim in zip(shifts, dims):
        d = axis(dim, x.ndim)
        n = x.shape[d] if x.ndim else 1
        split = -shift % n if n else 0
        if split:
            x = joined([cut(x, d, split, n), cut(x, d, 0, split)], d)
    return x
