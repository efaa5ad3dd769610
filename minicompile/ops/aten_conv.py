"""Convolution: pad -> window -> contract, in one to three dimensions.

    x [N, C, H, W]  --pad-->  --window-->  [N, C, Y, X, kh, kw]     nothing is copied: layouts are indices
    contract("ncyxhw,ochw->noyx")  + bias

Groups are one more letter; the transposed convolution is the same contraction over its input with zeros
between the elements, or a plain matrix product where its windows do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from minicompile.ops.aten_matmul import contract
from minicompile.ops.axes import (
    along,
    cut,
    dropped,
    margined,
    permuted,
    repeated,
    reshaped,
    stuffed,
    swapped,
)
from minicompile.ops.build import Handle, emit
from minicompile.ops.promote import cast, widened
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats

PLACES = ("", "x", "yx", "zyx")  # letters of positions, by number of dimensions
TAPS = ("", "w", "hw", "dhw")  # letters of the window's elements


def _grouped(x: Handle, dim: int, groups: int) -> Handle:
    """An axis of channels as two: (groups, channels of a group)."""
    n = x.shape[dim] // groups
    return reshaped(x, (*x.shape[:dim], groups, n, *x.shape[dim + 1 :]))


def _correlate(
    x: Handle, w: Handle, strides: Sequence[int], dilations: Sequence[int], groups: int
) -> Handle:
    """Windows of x [N, C, ...] times w [O, C/groups, ...]: [N, O, ...]."""
    n = w.ndim - 2
    g, o, c = "", "o", "c"
    if groups > 1:
        x, w, g = _grouped(x, 1, groups), _grouped(w, 0, groups), "g"
        if w.shape[2] == 1:  # depthwise: nothing to sum but the window
            x, w, c = dropped(x, 2), dropped(w, 2), ""
        if w.shape[1] == 1:
            w, o = dropped(w, 1), ""
    x, w, taps = _windows(x, w, strides, dilations)
    out = contract(x, w, f"n{g}{c}{PLACES[n]}{taps},{g}{o}{c}{taps}->n{g}{o}{PLACES[n]}")
    if g and o:
        out = reshaped(out, (out.shape[0], out.shape[1] * out.shape[2], *out.shape[3:]))
    return out


def _windows(
    x: Handle, w: Handle, strides: Sequence[int], dilations: Sequence[int]
) -> tuple[Handle, Handle, str]:
    """x seen as windows of the size of w, w, and the letters of the window's axes.

    A window of one element is only a stride: a 1x1 convolution is a matrix product.
    """
    n = len(strides)
    sizes, first, letters = w.shape[w.ndim - n :], x.ndim - n, TAPS[n]
    ones = [k for k in range(n) if sizes[k] == 1]
    for k in ones:
        x = cut(x, first + k, 0, x.shape[first + k], strides[k])
    w = dropped(w, *(w.ndim - n + k for k in ones))
    wider = [k for k in range(n) if sizes[k] != 1]
    if wider:
        x = emit(
            "window",
            x,
            dims=[first + k for k in wider],
            sizes=[sizes[k] for k in wider],
            strides=[strides[k] for k in wider],
            dilations=[dilations[k] for k in wider],
        )
    return x, w, "".join(letters[k] for k in wider)


def _transposed(
    x: Handle,
    w: Handle,
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    more: Sequence[int],
    groups: int,
) -> Handle:
    """The transposed convolution of x [N, C, ...] with w [C, O/groups, ...]: [N, O, ...].

    ``out[y] = sum over i, h with i*stride + h*dilation - padding == y of x[i] * w[h]``: a convolution of x
    with zeros stuffed between its elements and the window turned around.
    """
    spans = [d * (k - 1) for d, k in zip(dilations, w.shape[2:])]
    margins: dict[int, tuple[int, int]] = {}
    for k, (s, p, span, m) in enumerate(zip(strides, padding, spans, more)):
        x = stuffed(x, 2 + k, s, 0)
        margins[2 + k] = (span - p, span - p + m - (s - 1))
    x = margined(x, margins, 0)
    w = emit("flip", w, dims=tuple(range(2, w.ndim)))
    per_group = swapped(_grouped(w, 0, groups), 1, 2)  # [groups, O/groups, C/groups, ...]
    w = reshaped(per_group, (groups * w.shape[1], w.shape[0] // groups, *w.shape[2:]))
    return _correlate(x, w, (1,) * len(strides), dilations, groups)


def _tiled(
    x: Handle, w: Handle, padding: Sequence[int], more: Sequence[int], groups: int
) -> Handle:
    """The transposed convolution with stride == window: each element becomes a tile, none overlap.

    ``out[n, o, y*s + h, x*s + w] = sum over c of x[n, c, y, x] * w[c, o, h, w]``: s*s times less work
    than with stuffed zeros.
    """
    n = w.ndim - 2
    places, taps, g = PLACES[n], TAPS[n], "g" * (groups > 1)
    if g:
        x, w = _grouped(x, 1, groups), _grouped(w, 0, groups)
    out = contract(x, w, f"n{g}c{places},{g}co{taps}->n{g}o{taps}{places}")
    lead = len(g) + 2
    pairs = [lead + k + half for k in range(n) for half in (n, 0)]  # place, tap, place, tap, ...
    out = permuted(out, (*range(lead), *pairs))
    sides = [out.shape[lead + 2 * k] * out.shape[lead + 2 * k + 1] for k in range(n)]
    out = reshaped(out, (out.shape[0], math.prod(out.shape[1:lead]), *sides))
    return margined(out, {2 + k: (-p, m - p) for k, (p, m) in enumerate(zip(padding, more))}, 0)


def convolve(
    x: Handle,
    w: Handle,
    bias: Handle | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Handle:
    """Every convolution; half floats are computed in f32 and rounded once, after the bias."""
    n = w.ndim - 2
    dtype, x, w = x.dtype, widened(x), widened(w)
    stride, padding, dilation = repeated(stride, n), repeated(padding, n), repeated(dilation, n)
    if not transposed:
        x = margined(x, {2 + k: (p, p) for k, p in enumerate(padding)}, 0)
        out = _correlate(x, w, stride, dilation, groups)
    elif stride == w.shape[2:] and set(dilation) == {1}:
        out = _tiled(x, w, padding, repeated(output_padding, n), groups)
    else:
        out = _transposed(x, w, stride, padding, dilation, repeated(output_padding, n), groups)
    if bias is not None:
        out = out + along(widened(bias), 1, out.shape)
    return cast(out, dtype)


_CONVOLUTIONS = [
    sample(floats(2, 4, 9), floats(6, 2, 3), floats(6), (2,), (1,), (2,), False, (0,), 2),
    sample(
        floats(2, 3, 7, 6), floats(4, 3, 3, 2), floats(4), (1, 2), (1, 0), (1, 1), False, (0, 0), 1
    ),
    sample(floats(1, 4, 5, 5), floats(8, 1, 3, 3), None, (1, 1), (1, 1), (1, 1), False, (0, 0), 4),
    sample(floats(1, 4, 5, 5), floats(6, 4, 1, 1), None, (2, 2), (0, 0), (1, 1), False, (0, 0), 1),
    sample(
        floats(2, 4, 4, 3), floats(4, 3, 2, 2), floats(6), (2, 2), (0, 0), (1, 1), True, (0, 0), 2
    ),
    sample(floats(1, 3, 5), floats(3, 2, 4), floats(2), (2,), (1,), (2,), True, (1,), 1),
    sample(
        floats(1, 2, 3, 4, 3), floats(2, 2, 2, 2, 1), None, (1,) * 3, (0,) * 3, (1,) * 3, False,
        (0,) * 3, 1,
    ),
]  # fmt: skip


@composite("convolution", samples=_CONVOLUTIONS)
def convolution(
    input: Handle,
    weight: Handle,
    bias: Handle | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Handle:
    """Convolution (as in deep learning: the window is not turned), or its transpose.

    input [N, C, ...], weight [O, C/groups, ...] (transposed: [C, O/groups, ...]), bias [O].
    """
    return convolve(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


@composite(
    "_convolution",
    samples=[
        sample(
            floats(1, 2, 5), floats(3, 2, 2), floats(3), (1,), (0,), (1,), False, (0,), 1, False,
            False, False, False,
        )
    ],
)  # fmt: skip
def convolution_with_flags(
    input: Handle,
    weight: Handle,
    bias: Handle | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *flags: bool,
) -> Handle:
    """`convolution`; the flags choose between kernels of cuDNN."""
    return convolve(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )
