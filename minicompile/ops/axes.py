"""Axes of Handles: the small vocabulary in which composites of every family move and cut them.

All of it is Layout primitives, so nothing here costs anything by itself.  A dimension may be negative
wherever an argument is called `dim`; inside composites `axis` has made it 0 ... ndim-1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from minicompile.ir.types import DType
from minicompile.ops.build import Handle, broadcast_to, emit
from minicompile.ops.promote import cast, widened


def axis(dim: int, ndim: int) -> int:
    """A dimension counted from the front; a 0-d tensor counts as having one."""
    n = max(ndim, 1)
    if not -n <= dim < n:
        raise IndexError(f"dimension {dim} is out of range for a tensor of {ndim} dimensions")
    return dim % n


def axes(dims: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """Several dimensions counted from the front; None or none of them: all."""
    if isinstance(dims, int):
        dims = (dims,)
    found = tuple(axis(d, ndim) for d in dims or ())
    return found or tuple(range(ndim))


def repeated(value: int | Sequence[int], n: int, default: Sequence[int] = ()) -> tuple[int, ...]:
    """An ``int[n]`` argument of a schema: one number stands for all; an empty list for `default`."""
    values = (value,) if isinstance(value, int) else tuple(value) or tuple(default)
    return values * n if len(values) == 1 else values


def reshaped(x: Handle, shape: Sequence[int]) -> Handle:
    """x with another shape; x itself if nothing changes."""
    return x if x.shape == tuple(shape) else emit("reshape", x, shape=tuple(shape))


def permuted(x: Handle, dims: Sequence[int]) -> Handle:
    """Axis i of the result is axis dims[i] of x; x itself if nothing changes."""
    same = tuple(dims) == tuple(range(x.ndim))
    return x if same else emit("permute", x, dims=tuple(dims))


def swapped(x: Handle, a: int, b: int) -> Handle:
    """Two axes exchanged."""
    order = list(range(x.ndim))
    order[a], order[b] = order[b], order[a]
    return permuted(x, order)


def moved(x: Handle, source: Sequence[int], destination: Sequence[int]) -> Handle:
    """Axes source[i] become axes destination[i]; the others keep their order."""
    place = dict(zip(destination, source))
    rest = iter(d for d in range(x.ndim) if d not in set(source))
    return permuted(x, [place[d] if d in place else next(rest) for d in range(x.ndim)])


def inserted(x: Handle, *dims: int) -> Handle:
    """New axes of size 1, at these places of the result, in ascending order."""
    shape = list(x.shape)
    for d in dims:
        shape.insert(d, 1)
    return reshaped(x, shape)


def dropped(x: Handle, *dims: int) -> Handle:
    """Without these axes, which have size 1."""
    return reshaped(x, [n for d, n in enumerate(x.shape) if d not in dims])


def cut(x: Handle, dim: int, start: int, stop: int, step: int = 1) -> Handle:
    """``x[..., start:stop:step, ...]`` along one axis, with 0 <= start <= stop <= size."""
    if (start, stop, step) == (0, x.shape[dim], 1):
        return x
    starts, stops, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[dim], stops[dim], steps[dim] = start, stop, step
    return emit("slice", x, starts=starts, stops=stops, steps=steps)


def margined(x: Handle, margins: Mapping[int, tuple[int, int]], value: Any) -> Handle:
    """Margins (before, after) by axis, filled with `value`; a negative margin cuts away."""
    sizes = x.shape
    for d, (low, high) in margins.items():
        n = x.shape[d]
        if n + low + high < 0:
            raise ValueError(f"margins {low}, {high} leave nothing of an axis of size {n}")
        start, stop = min(max(-low, 0), n), max(min(n + high, n), 0)
        if start > stop:  # one side cuts into the other side's margin: nothing of x is left
            shape = [m + sum(margins.get(k, (0, 0))) for k, m in enumerate(sizes)]
            return filled(shape, value, x.dtype)
        x = cut(x, d, start, stop)
    low_ = [max(margins.get(d, (0, 0))[0], 0) for d in range(x.ndim)]
    high_ = [max(margins.get(d, (0, 0))[1], 0) for d in range(x.ndim)]
    return emit("pad", x, low=low_, high=high_, value=value) if any(low_ + high_) else x


def stuffed(x: Handle, dim: int, step: int, value: Any) -> Handle:
    """step-1 times `value` after each element of an axis, which becomes step times as long."""
    apart = margined(inserted(x, dim + 1), {dim + 1: (0, step - 1)}, value)
    return reshaped(apart, (*x.shape[:dim], x.shape[dim] * step, *x.shape[dim + 1 :]))


def joined(xs: Sequence[Handle], dim: int) -> Handle:
    """One after the other along an axis; operands without elements are left out."""
    full = [x for x in xs if x.shape[dim]] or list(xs[:1])
    return full[0] if len(full) == 1 else emit("concat", *full, dim=dim)


def along(v: Handle, dim: int, shape: Sequence[int]) -> Handle:
    """A vector seen with `shape`, as its axis `dim`: per-channel weights, counts, coordinates."""
    return emit("broadcast", v, shape=tuple(shape), dims=(dim,))


def spread(x: Handle, dims: Sequence[int], shape: Sequence[int]) -> Handle:
    """The inverse of a reduction: x repeated along the axes `dims` of `shape`, which x lacks."""
    kept = tuple(d for d in range(len(shape)) if d not in dims)
    if not dims:
        return x
    return emit("broadcast", x, shape=tuple(shape), dims=kept)


def counting(shape: Sequence[int], dim: int) -> Handle:
    """The index along an axis: i64[shape]."""
    return emit("iota", shape=tuple(shape), dim=dim)


def filled(shape: Sequence[int], value: Any, dtype: DType) -> Handle:
    """A constant everywhere."""
    return emit("full", shape=tuple(shape), value=value, dtype=dtype)


def expanded(x: Handle, shape: Sequence[int]) -> Handle:
    """``Tensor.expand``: -1 keeps a size."""
    lead = len(shape) - x.ndim
    return broadcast_to(x, tuple(x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)))


def chosen(hit: Handle, a: Handle, b: Handle) -> Handle:
    """a where hit, else b; half floats pass through f32, which changes nothing."""
    return cast(emit("where", hit, widened(a), widened(b)), a.dtype)
