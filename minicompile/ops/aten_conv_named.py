"""The convolutions by their public names: conv1d ... conv3d, conv_transpose1d ... 3d, padding="same"."""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.ops.aten_conv import convolve
from minicompile.ops.axes import dropped, inserted, margined
from minicompile.ops.build import Handle
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats

Ints = int | Sequence[int]


def _batched(x: Handle, w: Handle) -> Handle:
    """x with a batch axis, which these functions may lack."""
    return inserted(x, 0) if x.ndim == w.ndim - 1 else x


def _ints(value: Ints, n: int) -> tuple[int, ...]:
    return (value,) * n if isinstance(value, int) else tuple(value)


@composite("conv1d", samples=[sample(floats(2, 3, 8), floats(4, 3, 3), floats(4), (2,), (1,))])
@composite("conv2d", samples=[sample(floats(3, 6, 7), floats(4, 3, 3, 2), None, (1, 1), (1, 0))])
@composite("conv3d", samples=[sample(floats(1, 2, 4, 3, 4), floats(2, 2, 2, 2, 2), floats(2))])
def conv(
    input: Handle,
    weight: Handle,
    bias: Handle | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Handle:
    """`convolution` of input [N, C, ...] or [C, ...] with weight [O, C/groups, ...]."""
    n = weight.ndim - 2
    numbers = (_ints(stride, n), _ints(padding, n), _ints(dilation, n))
    out = convolve(_batched(input, weight), weight, bias, *numbers, False, (0,) * n, groups)
    return dropped(out, 0) if input.ndim == n + 1 else out


@composite("conv1d.padding", samples=[sample(floats(2, 3, 8), floats(4, 3, 4), None, (1,), "same")])
@composite(
    "conv2d.padding", samples=[sample(floats(1, 3, 6, 5), floats(4, 3, 3, 2), None, (1, 1), "same")]
)
@composite("conv3d.padding", samples=[sample(floats(1, 2, 4, 3, 4), floats(2, 2, 2, 2, 2))])
def conv_padding(
    input: Handle,
    weight: Handle,
    bias: Handle | None = None,
    stride: Ints = 1,
    padding: str = "valid",
    dilation: Ints = 1,
    groups: int = 1,
) -> Handle:
    """`convolution` with padding "valid" (none), or "same": as many positions as before.

    An odd total goes to the high side, as in ATen's _convolution_same.
    """
    n = weight.ndim - 2
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(_ints(dilation, n), weight.shape[2:])]
        first = input.ndim - n
        input = margined(input, {first + k: (t // 2, t - t // 2) for k, t in enumerate(totals)}, 0)
    return conv(input, weight, bias, stride, 0, dilation, groups)


@composite(
    "conv_transpose1d",
    samples=[sample(floats(2, 3, 5), floats(3, 4, 3), floats(4), (2,), (1,), (1,))],
)
@composite("conv_transpose2d.input", samples=[sample(floats(3, 4, 5), floats(3, 2, 3, 3))])
@composite("conv_transpose3d.input", samples=[sample(floats(1, 2, 2, 3, 2), floats(2, 3, 2, 2, 2))])
def conv_transpose(
    input: Handle,
    weight: Handle,
    bias: Handle | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Handle:
    """The transposed `convolution` of input [N, C, ...] or [C, ...] with weight [C, O/groups, ...]."""
    n = weight.ndim - 2
    numbers = (_ints(stride, n), _ints(padding, n), _ints(dilation, n))
    more = _ints(output_padding, n)
    out = convolve(_batched(input, weight), weight, bias, *numbers, True, more, groups)
    return dropped(out, 0) if input.ndim == n + 1 else out
