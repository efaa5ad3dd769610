"""Normalisation: batch, layer, group, instance, RMS and weight norm.

Variances are two-pass, about the mean: ``sum((x - mean)**2) / n``.  Half floats are computed in f32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from minicompile.errors import NotNative
from minicompile.ir.types import bf16
from minicompile.ops.axes import along, reshaped, spread
from minicompile.ops.build import Handle, broadcast_to
from minicompile.ops.elementwise import rsqrt, sqrt
from minicompile.ops.promote import cast, widened
from minicompile.ops.reduction import reduce_sum
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats

Triple = tuple[Handle, Handle, Handle]


def mean_over(x: Handle, dims: tuple[int, ...]) -> Handle:
    """The mean over axes, which disappear."""
    return reduce_sum(x, dims=dims) / float(math.prod(x.shape[d] for d in dims))


def centred(x: Handle, dims: tuple[int, ...]) -> Triple:
    """(x - mean, mean, variance) over some axes; mean and variance lack them."""
    mean = mean_over(x, dims)
    difference = x - spread(mean, dims, x.shape)
    return difference, mean, mean_over(difference * difference, dims)


def _kept(v: Handle, x: Handle, dims: tuple[int, ...]) -> Handle:
    """The result of a reduction with its axes back, of size 1."""
    return reshaped(v, [1 if d in dims else n for d, n in enumerate(x.shape)])


def _affine(y: Handle, weight: Handle | None, bias: Handle | None) -> Handle:
    """``y * weight + bias``, both broadcast over the leading axes."""
    if weight is not None:
        y = y * broadcast_to(cast(weight, y.dtype), y.shape)
    return y if bias is None else y + broadcast_to(cast(bias, y.dtype), y.shape)


def _layer(
    x: Handle, normalized: Sequence[int], weight: Handle | None, bias: Handle | None, eps: float
) -> Triple:
    """(y, mean, 1 / sqrt(var + eps)) in the dtype of the arithmetic; the statistics keep their axes."""
    dims = tuple(range(x.ndim - len(normalized), x.ndim))
    difference, mean, variance = centred(x, dims)
    scale = rsqrt(variance + float(eps))
    y = _affine(difference * spread(scale, dims, x.shape), weight, bias)
    return y, _kept(mean, x, dims), _kept(scale, x, dims)


@composite(
    "native_layer_norm",
    samples=[
        sample(floats(2, 3, 8), (8,), floats(8), floats(8), 1e-5),
        sample(floats(2, 3, 4), (3, 4), None, None, 1e-5),
    ],
)
def native_layer_norm(
    input: Handle,
    normalized_shape: Sequence[int],
    weight: Handle | None,
    bias: Handle | None,
    eps: float,
) -> Triple:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axes; also mean and 1/sqrt(var + eps)."""
    y, mean, scale = _layer(widened(input), normalized_shape, weight, bias, eps)
    narrow = input.dtype if weight is None else weight.dtype  # what eager keeps statistics in
    return cast(y, input.dtype), cast(mean, narrow), cast(scale, narrow)


@composite("layer_norm", samples=[sample(floats(2, 3, 8), (8,), floats(8), floats(8))])
def layer_norm(
    input: Handle,
    normalized_shape: Sequence[int],
    weight: Handle | None = None,
    bias: Handle | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Handle:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axes."""
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


_RMS = [sample(floats(2, 3, 8), (8,), floats(8), 1e-6), sample(floats(2, 3, 4), (3, 4), None, None)]


@composite("_fused_rms_norm", samples=_RMS)
def fused_rms_norm(
    input: Handle, normalized_shape: Sequence[int], weight: Handle | None, eps: float | None
) -> tuple[Handle, Handle]:
    """``x / sqrt(mean(x*x) + eps) * weight`` over the last axes; also 1/sqrt(...). eps: the machine's."""
    import torch

    x = widened(input)
    dims = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    floor = torch.finfo(x.dtype.torch).eps if eps is None else float(eps)
    scale = rsqrt(mean_over(x * x, dims) + floor)
    y = _affine(x * spread(scale, dims, x.shape), weight, None)
    return cast(y, input.dtype), _kept(scale, x, dims)


@composite("rms_norm", samples=[*_RMS, sample(floats(4, 8), (8,))])
def rms_norm(
    input: Handle,
    normalized_shape: Sequence[int],
    weight: Handle | None = None,
    eps: float | None = None,
) -> Handle:
    """``x / sqrt(mean(x*x) + eps) * weight`` over the last axes."""
    return fused_rms_norm(input, normalized_shape, weight, eps)[0]


@composite(
    "native_group_norm",
    samples=[
        sample(floats(2, 6, 3, 2), floats(6), floats(6), 2, 6, 6, 3, 1e-5),
        sample(floats(2, 4, 5), None, None, 2, 4, 5, 2, 1e-5),
    ],
)
def native_group_norm(
    input: Handle,
    weight: Handle | None,
    bias: Handle | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> Triple:
    """Each sample's channels in groups, each group normalised; also mean and 1/sqrt(var + eps) [N, group]."""
    x = widened(input)
    split = reshaped(x, (N, group, C // group, *x.shape[2:]))
    dims = tuple(range(2, split.ndim))
    difference, mean, variance = centred(split, dims)
    scale = rsqrt(variance + float(eps))
    y = reshaped(difference * spread(scale, dims, split.shape), x.shape)
    if weight is not None:
        y = y * along(cast(weight, x.dtype), 1, x.shape)
    if bias is not None:
        y = y + along(cast(bias, x.dtype), 1, x.shape)
    narrow = input.dtype if weight is None else weight.dtype
    return cast(y, input.dtype), cast(mean, narrow), cast(scale, narrow)


@composite("group_norm", samples=[sample(floats(2, 6, 3, 2), 3, floats(6), floats(6))])
def group_norm(
    input: Handle,
    num_groups: int,
    weight: Handle | None = None,
    bias: Handle | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Handle:
    """Each sample's channels in groups, each group normalised; weight and bias per channel."""
    n, c, *rest = input.shape
    return native_group_norm(input, weight, bias, n, c, math.prod(rest), num_groups, eps)[0]


@composite("_weight_norm_interface", samples=[sample(floats(4, 3, 2), floats(4, 1, 1), 0)])
def weight_norm_interface(v: Handle, g: Handle, dim: int = 0) -> tuple[Handle, Handle]:
    """``v * g / |v|`` with the norm over all axes but `dim` (0 or the last); also the norms (f32 for bf16)."""
    if dim not in (0, v.ndim - 1):
        raise NotNative("weight norm over a middle axis")
    x = widened(v)
    dims = tuple(d for d in range(x.ndim) if d != dim)
    norm = _kept(sqrt(reduce_sum(x * x, dims=dims)), x, dims)
    w = x * broadcast_to(widened(g) / norm, x.shape)
    return cast(w, v.dtype), norm if g.dtype is bf16 else cast(norm, g.dtype)


@composite("_weight_norm", samples=[sample(floats(4, 3, 2), floats(4, 1, 1), 0)])
def weight_norm(v: Handle, g: Handle, dim: int = 0) -> Handle:
    """``v * g / |v|`` with the norm over all axes but `dim`."""
    return weight_norm_interface(v, g, dim)[0]
