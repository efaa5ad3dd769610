"""Layout primitives: output index -> input index. They cost nothing by themselves.

Lowering turns each into a substitution of indices in the loads of its consumers (`concat` and `pad` also
choose: which operand, inside or outside).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from minicompile.ir.types import Shape, TensorType
from minicompile.ops.registry import Kind, primitive


def _need(ok: bool, message: str) -> None:
    if not ok:
        raise TypeError(message)


def _broadcast(x: TensorType, *, shape: Shape, dims: tuple[int, ...]) -> TensorType:
    _need(len(dims) == x.ndim, f"dims must name one output axis for each axis of {x}")
    for d, n in zip(dims, x.shape):
        _need(n in (1, shape[d]), f"axis of size {n} cannot become size {shape[d]}")
    return x.with_shape(shape)


def _broadcast_meaning(x: torch.Tensor, shape: Any, dims: tuple[int, ...]) -> torch.Tensor:
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    view = [1] * len(shape)
    for i in order:
        view[dims[i]] = x.shape[i]
    return x.permute(order).reshape(view).expand(shape)


broadcast = primitive(
    "broadcast",
    Kind.LAYOUT,
    _broadcast,
    _broadcast_meaning,
    "Axis i of x becomes axis dims[i] of the result; the other axes repeat it, as do axes of size 1.",
)


def _permute(x: TensorType, *, dims: tuple[int, ...]) -> TensorType:
    _need(sorted(dims) == list(range(x.ndim)), f"{dims} is not a permutation of the axes of {x}")
    return x.with_shape(tuple(x.shape[d] for d in dims))


permute = primitive(
    "permute",
    Kind.LAYOUT,
    _permute,
    lambda x, dims: x.permute(dims),
    "Axis i of the result is axis dims[i] of x.",
)


def _reshape(x: TensorType, *, shape: tuple[int, ...]) -> TensorType:
    _need(math.prod(shape) == x.numel, f"{x} has {x.numel} elements, shape {shape} has others")
    return x.with_shape(shape)


reshape = primitive(
    "reshape",
    Kind.LAYOUT,
    _reshape,
    lambda x, shape: x.reshape(shape),
    "The same elements, in row-major order, with another shape.",
)


def _slice(
    x: TensorType, *, starts: tuple[int, ...], stops: tuple[int, ...], steps: tuple[int, ...]
) -> TensorType:
    _need(len(starts) == len(stops) == len(steps) == x.ndim, f"one range for each axis of {x}")
    for a, b, s, n in zip(starts, stops, steps, x.dims):
        _need(0 <= a <= b <= n and s > 0, f"range {a}:{b}:{s} does not lie in an axis of size {n}")
    return x.with_shape(tuple(-(-(b - a) // s) for a, b, s in zip(starts, stops, steps)))


slice_ = primitive(
    "slice",
    Kind.LAYOUT,
    _slice,
    lambda x, starts, stops, steps: x[tuple(map(slice, starts, stops, steps))],
    "x[starts:stops:steps], axis by axis; 0 <= start <= stop <= size, step > 0.",
)


def _pad(
    x: TensorType, *, low: tuple[int, ...], high: tuple[int, ...], value: bool | int | float
) -> TensorType:
    _need(len(low) == len(high) == x.ndim, f"one margin for each axis of {x}")
    _need(min((*low, *high, 0)) >= 0, "margins are not negative; slice first")
    return x.with_shape(tuple(a + n + b for a, n, b in zip(low, x.dims, high)))


def _pad_meaning(x: torch.Tensor, low: Any, high: Any, value: Any) -> torch.Tensor:
    margins = [m for a, b in zip(reversed(low), reversed(high)) for m in (a, b)]
    return F.pad(x, margins, value=value)


pad = primitive(
    "pad",
    Kind.LAYOUT,
    _pad,
    _pad_meaning,
    "low[i] before and high[i] after axis i, filled with the constant `value`.",
)


def _flip(x: TensorType, *, dims: tuple[int, ...]) -> TensorType:
    _need(all(0 <= d < x.ndim for d in dims), f"{dims} are not axes of {x}")
    return x.pure()


flip = primitive(
    "flip", Kind.LAYOUT, _flip, lambda x, dims: x.flip(dims), "The axes `dims` read backwards."
)


def _window(
    x: TensorType,
    *,
    dims: tuple[int, ...],
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> TensorType:
    shape = list(x.dims)
    for d, k, s, dil in zip(dims, sizes, strides, dilations, strict=True):
        span = (k - 1) * dil + 1
        _need(shape[d] >= span, f"a window of {span} does not fit an axis of size {shape[d]}")
        shape[d] = (shape[d] - span) // s + 1
    return x.with_shape((*shape, *sizes))


def _window_meaning(
    x: torch.Tensor, dims: Any, sizes: Any, strides: Any, dilations: Any
) -> torch.Tensor:
    for d, k, s, dil in zip(dims, sizes, strides, dilations):
        x = x.unfold(d, (k - 1) * dil + 1, s)[..., ::dil]
    return x


window = primitive(
    "window",
    Kind.LAYOUT,
    _window,
    _window_meaning,
    "Sliding windows: result[..., p, ..., k] = x[..., p*stride + k*dilation, ...]. For each of `dims`, the "
    "axis counts positions and a new axis at the end (in order) counts the elements of the window.",
)


def _concat(*xs: TensorType, dim: int) -> TensorType:
    first = xs[0]
    rest = [n for d, n in enumerate(first.shape) if d != dim]
    for x in xs:
        same = x.dtype is first.dtype and [n for d, n in enumerate(x.shape) if d != dim] == rest
        _need(same and x.ndim == first.ndim, f"{x} cannot be joined to {first} along axis {dim}")
    shape = list(first.dims)
    shape[dim] = sum(x.dims[dim] for x in xs)
    return first.with_shape(tuple(shape))


concat = primitive(
    "concat",
    Kind.LAYOUT,
    _concat,
    lambda *xs, dim: torch.cat(xs, dim),
    "The operands one after the other along axis `dim`.",
)
