"""Batch normalisation, in evaluation and in training.

As ATen's kernel (batch_norm_cpu): per channel ``alpha = weight / sqrt(var + eps)`` and ``beta = bias - mean *
alpha``, then ``y = x * alpha + beta``.  Channels are axis 1.
"""

from __future__ import annotations

import math

from minicompile.errors import NotNative
from minicompile.ir.types import DType, u8
from minicompile.ops.aten_norm import Triple, centred
from minicompile.ops.axes import along, filled, spread
from minicompile.ops.build import Handle
from minicompile.ops.elementwise import rsqrt
from minicompile.ops.promote import cast, constant, widened
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats

Maybe = Handle | None
Statistics = tuple[Handle, Handle]


def _normalised(input: Handle, mean: Handle, scale: Handle, weight: Maybe, bias: Maybe) -> Handle:
    """``x * alpha + beta``, rounded once to the dtype of the input."""
    x = widened(input)
    alpha = scale if weight is None else scale * cast(weight, x.dtype)
    beta = -(mean * alpha) if bias is None else cast(bias, x.dtype) - mean * alpha
    return cast(x * along(alpha, 1, x.shape) + along(beta, 1, x.shape), input.dtype)


def _evaluated(
    input: Handle, weight: Maybe, bias: Maybe, mean: Maybe, var: Maybe, eps: float
) -> Handle:
    """Normalised by the running statistics."""
    if mean is None or var is None:
        raise NotNative("batch norm in evaluation without running statistics")
    dtype = widened(input).dtype
    scale = rsqrt(cast(var, dtype) + float(eps))
    return _normalised(input, cast(mean, dtype), scale, weight, bias)


def _trained(input: Handle, weight: Maybe, bias: Maybe, eps: float) -> tuple[Triple, Statistics]:
    """Normalised by the batch's own statistics: (y, mean, 1 / sqrt(var + eps)), (mean, unbiased var)."""
    x = widened(input)
    dims = tuple(d for d in range(x.ndim) if d != 1)
    n = math.prod(x.shape[d] for d in dims)
    _, mean, var = centred(x, dims)
    scale = rsqrt(var + float(eps))
    y = _normalised(input, mean, scale, weight, bias)
    unbiased = var * float(n) / float(n - 1) if n > 1 else var * math.nan
    dtype = _kept_in(input, weight, bias)
    return (y, cast(mean, dtype), cast(scale, dtype)), (mean, unbiased)


def _running(old: Handle, new: Handle, momentum: float) -> Handle:
    """``momentum * new + (1 - momentum) * old``."""
    mixed = new * float(momentum) + cast(old, new.dtype) * (1.0 - momentum)
    return cast(mixed, old.dtype)


def _kept_in(input: Handle, *parameters: Maybe) -> DType:
    """The dtype of the statistics: the input's, or f32 where half floats meet f32 parameters."""
    mixed = any(p is not None and p.dtype is not input.dtype for p in parameters)
    return widened(input).dtype if mixed else input.dtype


def _nothing(input: Handle, *parameters: Maybe) -> Handle:
    """What the kernel returns in evaluation in place of saved statistics."""
    return constant(0.0, _kept_in(input, *parameters), (0,))


_EVAL = [
    sample(
        floats(2, 3, 4), floats(3), floats(3), floats(3), floats(3, low=0.5, high=2.0), 0.1, 1e-5
    )
]


@composite("_native_batch_norm_legit_no_training", samples=_EVAL)
def batch_norm_no_training(
    input: Handle,
    weight: Maybe,
    bias: Maybe,
    running_mean: Handle,
    running_var: Handle,
    momentum: float,
    eps: float,
) -> Triple:
    """Normalised by running statistics; the two other results are empty."""
    y = _evaluated(input, weight, bias, running_mean, running_var, eps)
    nothing = _nothing(input, weight, bias, running_mean, running_var)
    return y, nothing, nothing


_NATIVE = [
    sample(
        floats(2, 3, 4, 5),
        floats(3),
        floats(3),
        floats(3),
        floats(3, low=0.5, high=2.0),
        False,
        0.1,
        1e-5,
    ),
    sample(floats(4, 3), None, None, floats(3), floats(3, low=0.5, high=2.0), False, 0.1, 1e-5),
]


@composite(
    "native_batch_norm",
    samples=[*_NATIVE, sample(floats(4, 3), floats(3), None, None, None, True, 0.1, 1e-5)],
)
def native_batch_norm(
    input: Handle,
    weight: Maybe,
    bias: Maybe,
    running_mean: Maybe,
    running_var: Maybe,
    training: bool,
    momentum: float,
    eps: float,
) -> Triple:
    """Normalised by the batch's statistics (training) or the running ones; saved mean and 1/sqrt(var + eps).

    With running statistics in training this overload mutates them, so that is not native.
    """
    if not training:
        y = _evaluated(input, weight, bias, running_mean, running_var, eps)
        nothing = _nothing(input, weight, bias, running_mean, running_var)
        return y, nothing, nothing
    if running_mean is not None or running_var is not None:
        raise NotNative("batch norm that updates its running statistics in place")
    return _trained(input, weight, bias, eps)[0]


@composite(
    "_native_batch_norm_legit.no_stats",
    samples=[sample(floats(4, 3, 2), floats(3), floats(3), True, 0.1, 1e-5)],
)
def batch_norm_no_stats(
    input: Handle, weight: Maybe, bias: Maybe, training: bool, momentum: float, eps: float
) -> Triple:
    """Normalised by the batch's statistics; saved mean and 1/sqrt(var + eps)."""
    return _trained(input, weight, bias, eps)[0]


@composite("_native_batch_norm_legit_functional", samples=[
    sample(floats(4, 3, 2), floats(3), floats(3), floats(3), floats(3, low=0.5, high=2.0), True, 0.1, 1e-5),
    *_NATIVE,
])  # fmt: skip
def batch_norm_functional(
    input: Handle,
    weight: Maybe,
    bias: Maybe,
    running_mean: Handle,
    running_var: Handle,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Handle, ...]:
    """As native_batch_norm; the new running mean and variance are results."""
    if not training:
        y = _evaluated(input, weight, bias, running_mean, running_var, eps)
        nothing = _nothing(input, weight, bias, running_mean, running_var)
        return y, nothing, nothing, running_mean, running_var
    triple, (mean, var) = _trained(input, weight, bias, eps)
    return *triple, _running(running_mean, mean, momentum), _running(running_var, var, momentum)


@composite("_batch_norm_with_update_functional", samples=[
    sample(floats(4, 3, 2), floats(3), floats(3), floats(3), floats(3, low=0.5, high=2.0), 0.1, 1e-5),
])  # fmt: skip
def batch_norm_with_update(
    input: Handle,
    weight: Maybe,
    bias: Maybe,
    running_mean: Handle,
    running_var: Handle,
    momentum: float,
    eps: float,
) -> tuple[Handle, ...]:
    """Training: as batch_norm_functional, with an empty result more, which cuDNN would reserve."""
    args = (input, weight, bias, running_mean, running_var, True, momentum, eps)
    y, mean, scale, new_mean, new_var = batch_norm_functional(*args)
    return y, mean, scale, filled((0,), 0, u8), new_mean, new_var


@composite("_batch_norm_no_update", samples=_EVAL)
def batch_norm_no_update(
    input: Handle,
    weight: Maybe,
    bias: Maybe,
    running_mean: Maybe,
    running_var: Maybe,
    momentum: float,
    eps: float,
) -> tuple[Handle, ...]:
    """Evaluation: as batch_norm_no_training, with an empty result more."""
    y = _evaluated(input, weight, bias, running_mean, running_var, eps)
    nothing = _nothing(input, weight, bias, running_mean, running_var)
    return y, nothing, nothing, filled((0,), 0, u8)


@composite("batch_norm", samples=[
    sample(floats(2, 3, 4), floats(3), floats(3), floats(3), floats(3, low=0.5, high=2.0), False, 0.1, 1e-5, False),
    sample(floats(4, 3), None, None, None, None, True, 0.1, 1e-5, False),
])  # fmt: skip
def batch_norm(
    input: Handle,
    weight: Maybe,
    bias: Maybe,
    running_mean: Maybe,
    running_var: Maybe,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Handle:
    """Normalised by the batch's statistics (training) or the running ones."""
    args = (input, weight, bias, running_mean, running_var, training, momentum, eps)
    return native_batch_norm(*args)[0]


@composite("instance_norm", samples=[
    sample(floats(2, 3, 4), floats(3), floats(3), None, None, True, 0.1, 1e-5, False),
])  # fmt: skip
def instance_norm(
    input: Handle,
    weight: Maybe,
    bias: Maybe,
    running_mean: Maybe,
    running_var: Maybe,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Handle:
    """Each channel of each sample normalised by itself (or by running statistics)."""
    if not use_input_stats:
        return _evaluated(input, weight, bias, running_mean, running_var, eps)
    if running_mean is not None:
        raise NotNative("instance norm that updates its running statistics in place")
    x = widened(input)
    dims = tuple(range(2, x.ndim))
    _, mean, var = centred(x, dims)
    scale = rsqrt(var + float(eps))
    alpha = scale if weight is None else scale * along(cast(weight, x.dtype), 1, scale.shape)
    beta = -(mean * alpha)
    if bias is not None:
        beta = along(cast(bias, x.dtype), 1, scale.shape) + beta
    return cast(x * spread(alpha, dims, x.shape) + spread(beta, dims, x.shape), input.dtype)
