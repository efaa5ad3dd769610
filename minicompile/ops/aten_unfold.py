"""Windows of images as columns of a matrix, and back: im2col (F.unfold) and col2im (F.fold)."""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.ops.aten_scatter import scattered
from minicompile.ops.axes import (
    counting,
    dropped,
    filled,
    inserted,
    margined,
    permuted,
    reshaped,
)
from minicompile.ops.build import Handle, emit
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats

Pair = Sequence[int]

_IM2COL = [
    sample(floats(2, 3, 6, 5), (2, 3), (1, 1), (0, 1), (2, 1)),
    sample(floats(3, 6, 7), (2, 2), (2, 3), (1, 1), (1, 1)),
]


@composite("im2col", samples=_IM2COL)
def im2col(self: Handle, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Handle:
    """[N, C, H, W] -> [N, C*kh*kw, Y*X]: each column is the content of one window."""
    x = self if self.ndim == 4 else inserted(self, 0)
    x = margined(x, {2: (padding[0],) * 2, 3: (padding[1],) * 2}, 0)
    x = emit("window", x, dims=(2, 3), sizes=kernel_size, strides=stride, dilations=dilation)
    n, c, y, x_, h, w = x.shape
    out = reshaped(permuted(x, (0, 1, 4, 5, 2, 3)), (n, c * h * w, y * x_))
    return out if self.ndim == 4 else dropped(out, 0)


@composite(
    "col2im",
    samples=[
        sample(floats(2, 18, 12), (5, 6), (2, 3), (1, 1), (0, 1), (2, 1)),
        sample(floats(8, 8), (4, 5), (2, 2), (2, 3), (1, 1), (2, 1)),
    ],
)
def col2im(
    self: Handle,
    output_size: Pair,
    kernel_size: Pair,
    dilation: Pair,
    padding: Pair,
    stride: Pair,
) -> Handle:
    """[N, C*kh*kw, Y*X] -> [N, C, H, W]: the inverse of im2col; where windows overlap, their sum."""
    cols = self if self.ndim == 3 else inserted(self, 0)
    (h, w), n = kernel_size, cols.shape[0]
    padded = [size + 2 * p for size, p in zip(output_size, padding)]
    grid = [
        (size - d * (k - 1) - 1) // s + 1
        for size, d, k, s in zip(padded, dilation, kernel_size, stride)
    ]
    c = cols.shape[1] // (h * w)
    src = permuted(reshaped(cols, (n, c, h, w, *grid)), (2, 3, 4, 5, 0, 1))
    taps = src.shape[:4]
    rows = counting(taps, 2) * stride[0] + counting(taps, 0) * dilation[0]
    columns = counting(taps, 3) * stride[1] + counting(taps, 1) * dilation[1]
    zeros = filled((n, c, *padded), 0, self.dtype)
    out = scattered(zeros, src, [rows, columns], [2, 3], "add")
    out = margined(out, {2: (-padding[0],) * 2, 3: (-padding[1],) * 2}, 0)
    return out if self.ndim == 3 else dropped(out, 0)
