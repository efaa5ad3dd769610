"""Layout primitives: output index -> input index. They cost nothing by themselves.

Lowering turns each into a substitution of indices in the loads of its consumers (`concat` and `pad` also
choose: which operand, inside or outside).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from minicompile.ir.index import Index, add, divide, ix, times
from minicompile.ir.types import Shape, TensorType, contiguous_strides
from minicompile.ops.registry import Arm, Kind, Read, primitive


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


Attrs = Mapping[str, Any]
Extents = dict[str, int]


def _read_broadcast(xs: Sequence[TensorType], attrs: Attrs, out: Any, extents: Extents) -> Read:
    x, shape = xs[0], attrs["shape"]
    index = [out[d] if n == shape[d] else Index() for d, n in zip(attrs["dims"], x.shape)]
    return Read((Arm(0, tuple(index)),))


broadcast = primitive(
    "broadcast",
    Kind.LAYOUT,
    _broadcast,
    _broadcast_meaning,
    "Axis i of x becomes axis dims[i] of the result; the other axes repeat it, as do axes of size 1.",
    read=_read_broadcast,
)


def _permute(x: TensorType, *, dims: tuple[int, ...]) -> TensorType:
    _need(sorted(dims) == list(range(x.ndim)), f"{dims} is not a permutation of the axes of {x}")
    return x.with_shape(tuple(x.shape[d] for d in dims))


def _read_permute(xs: Sequence[TensorType], attrs: Attrs, out: Any, extents: Extents) -> Read:
    index = [Index()] * xs[0].ndim
    for i, d in zip(out, attrs["dims"]):
        index[d] = i
    return Read((Arm(0, tuple(index)),))


permute = primitive(
    "permute",
    Kind.LAYOUT,
    _permute,
    lambda x, dims: x.permute(dims),
    "Axis i of the result is axis dims[i] of x.",
    read=_read_permute,
)


def _reshape(x: TensorType, *, shape: tuple[int, ...]) -> TensorType:
    _need(math.prod(shape) == x.numel, f"{x} has {x.numel} elements, shape {shape} has others")
    return x.with_shape(shape)


def _read_reshape(xs: Sequence[TensorType], attrs: Attrs, out: Any, extents: Extents) -> Read:
    """Row-major position of the output index, taken apart by the strides of x.

    Runs of axes that both shapes share, counted from the left, are passed through untouched.
    """
    old, new = xs[0].dims, tuple(attrs["shape"])
    if 0 in old:  # nothing is ever read
        return Read((Arm(0, (Index(),) * len(old)),))
    index: list[Index] = []
    a = b = 0
    while a < len(old) or b < len(new):
        # the shortest run of axes on each side with the same number of elements
        ra, rb = [a], [b]
        na, nb = old[a] if a < len(old) else 1, new[b] if b < len(new) else 1
        while na != nb:
            if na < nb:
                ra.append(ra[-1] + 1)
                na *= old[ra[-1]]
            else:
                rb.append(rb[-1] + 1)
                nb *= new[rb[-1]]
        sizes = [new[d] for d in rb if d < len(new)]
        flat = Index()
        for d, step in zip((d for d in rb if d < len(new)), contiguous_strides(tuple(sizes))):
            flat = add(flat, out[d], step)
        inner = [old[d] for d in ra if d < len(old)]
        for step in contiguous_strides(tuple(inner)):
            quotient, flat = divide(flat, step, extents)
            index.append(quotient)
        a, b = ra[-1] + 1, rb[-1] + 1
    return Read((Arm(0, tuple(index)),))


reshape = primitive(
    "reshape",
    Kind.LAYOUT,
    _reshape,
    lambda x, shape: x.reshape(shape),
    "The same elements, in row-major order, with another shape.",
    read=_read_reshape,
    row_major=True,
)


def _slice(
    x: TensorType, *, starts: tuple[int, ...], stops: tuple[int, ...], steps: tuple[int, ...]
) -> TensorType:
    _need(len(starts) == len(stops) == len(steps) == x.ndim, f"one range for each axis of {x}")
    for a, b, s, n in zip(starts, stops, steps, x.dims):
        _need(0 <= a <= b <= n and s > 0, f"range {a}:{b}:{s} does not lie in an axis of size {n}")
    return x.with_shape(tuple(-(-(b - a) // s) for a, b, s in zip(starts, stops, steps)))


def _read_slice(xs: Sequence[TensorType], attrs: Attrs, out: Any, extents: Extents) -> Read:
    ranges = zip(out, attrs["starts"], attrs["steps"])
    return Read((Arm(0, tuple(add(ix(const=a), i, s) for i, a, s in ranges)),))


slice_ = primitive(
    "slice",
    Kind.LAYOUT,
    _slice,
    lambda x, starts, stops, steps: x[tuple(map(slice, starts, stops, steps))],
    "x[starts:stops:steps], axis by axis; 0 <= start <= stop <= size, step > 0.",
    read=_read_slice,
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


def _read_pad(xs: Sequence[TensorType], attrs: Attrs, out: Any, extents: Extents) -> Read:
    index = tuple(add(i, ix(const=-a)) for i, a in zip(out, attrs["low"]))
    margins = zip(attrs["low"], attrs["high"])
    conds = tuple((0, i, n) for i, n, m in zip(index, xs[0].dims, margins) if m != (0, 0))
    return Read((Arm(0, index, conds),), attrs["value"])


pad = primitive(
    "pad",
    Kind.LAYOUT,
    _pad,
    _pad_meaning,
    "low[i] before and high[i] after axis i, filled with the constant `value`.",
    read=_read_pad,
)


def _flip(x: TensorType, *, dims: tuple[int, ...]) -> TensorType:
    _need(all(0 <= d < x.ndim for d in dims), f"{dims} are not axes of {x}")
    return x.pure()


def _read_flip(xs: Sequence[TensorType], attrs: Attrs, out: Any, extents: Extents) -> Read:
    n = xs[0].dims
    index = (add(ix(const=n[d] - 1), i, -1) if d in attrs["dims"] else i for d, i in enumerate(out))
    return Read((Arm(0, tuple(index)),))


flip = primitive(
    "flip",
    Kind.LAYOUT,
    _flip,
    lambda x, dims: x.flip(dims),
    "The axes `dims` read backwards.",
    read=_read_flip,
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


def _read_window(xs: Sequence[TensorType], attrs: Attrs, out: Any, extents: Extents) -> Read:
    n = xs[0].ndim
    index = list(out[:n])
    for k, (d, s, dil) in enumerate(zip(attrs["dims"], attrs["strides"], attrs["dilations"])):
        index[d] = add(times(index[d], s), out[n + k], dil)
    return Read((Arm(0, tuple(index)),))


window = primitive(
    "window",
    Kind.LAYOUT,
    _window,
    _window_meaning,
    "Sliding windows: result[..., p, ..., k] = x[..., p*stride + k*dilation, ...]. For each of `dims`, the "
    "axis counts positions and a new axis at the end (in order) counts the elements of the window.",
    read=_read_window,
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


def _read_concat(xs: Sequence[TensorType], attrs: Attrs, out: Any, extents: Extents) -> Read:
    dim, start, arms = attrs["dim"], 0, []
    for k, x in enumerate(xs):
        here = add(out[dim], ix(const=-start))
        conds = ((0, here, x.dims[dim]),) if k < len(xs) - 1 else ()
        arms.append(Arm(k, (*out[:dim], here, *out[dim + 1 :]), conds))
        start += x.dims[dim]
    return Read(tuple(arms))


concat = primitive(
    "concat",
    Kind.LAYOUT,
    _concat,
    lambda *xs, dim: torch.cat(xs, dim),
    "The operands one after the other along axis `dim`.",
    read=_read_concat,
)
