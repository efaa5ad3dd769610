"""Pooling: pad -> window -> reduce, in one to three dimensions, over the last axes.

Average pooling divides by the number of elements under the window, which is a product of one count per
axis: a constant, or at the borders an expression of the position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from minicompile.ops.axes import along, counting, margined, repeated, reshaped, spread
from minicompile.ops.build import Handle, emit
from minicompile.ops.elementwise import eq, isnan, maximum, minimum, where
from minicompile.ops.promote import cast, widened
from minicompile.ops.reduction import reduce_max, reduce_min, reduce_sum
from minicompile.ops.registry import Sample, composite, identity, sample
from minicompile.ops.samples import floats

Ints = int | Sequence[int]


@dataclass(frozen=True)
class Windows:
    """Where the windows lie on each of the pooled axes, which are the last ones."""

    inputs: tuple[int, ...]  # sizes of the pooled axes
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilations: tuple[int, ...]
    ceil: bool

    @property
    def spans(self) -> tuple[int, ...]:
        return tuple(d * (k - 1) + 1 for k, d in zip(self.sizes, self.dilations))

    @property
    def outputs(self) -> tuple[int, ...]:
        """Positions per axis; with ceil, a last window that starts inside may hang over the edge.

        Source: pooling_output_shape in aten/src/ATen/native/Pool.h.
        """
        found = []
        for n, span, s, p in zip(self.inputs, self.spans, self.strides, self.padding):
            out = (n + 2 * p - span + (s - 1 if self.ceil else 0)) // s + 1
            found.append(out - (self.ceil and (out - 1) * s >= n + p))
        return tuple(found)

    def over(self, x: Handle, value: bool | int | float) -> Handle:
        """x seen through the windows: [..., outputs, sizes]; outside of x is `value`."""
        first = x.ndim - len(self.inputs)
        margins = {}
        for k, (n, out) in enumerate(zip(self.inputs, self.outputs)):
            end = (out - 1) * self.strides[k] + self.spans[k]  # of the last window, from the margin
            margins[first + k] = (self.padding[k], max(end - n - self.padding[k], 0))
        return emit(
            "window",
            margined(x, margins, value),
            dims=range(first, x.ndim),
            sizes=self.sizes,
            strides=self.strides,
            dilations=self.dilations,
        )

    def dims(self, x: Handle) -> tuple[int, ...]:
        """The axes of the windows' elements in `over(x)`."""
        return tuple(range(x.ndim, x.ndim + len(self.inputs)))


def windows(
    x: Handle, n: int, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool
) -> Windows:
    """The windows of a call with the schema's arguments, over the last n axes of x."""
    sizes = repeated(kernel, n)
    numbers = (repeated(stride, n, sizes), repeated(padding, n), repeated(dilation, n))
    return Windows(x.shape[x.ndim - n :], sizes, *numbers, ceil)


# ---------------------------------------------------------------------------------- maximum


def largest(x: Handle, at: Windows) -> tuple[Handle, Handle]:
    """The maximum of each window, and where it lies: its flat position in the pooled axes.

    As ATen's kernel: the first maximum wins, but the last NaN.  If nobody asks for the positions, dce
    removes them.
    """
    low = identity("max", x.dtype)
    seen = at.over(x, low)
    dims = at.dims(x)
    best = reduce_max(widened(seen), dims=dims)
    area = math.prod(at.inputs)
    places = reshaped(counting((area,), 0), at.inputs)
    places = at.over(places, area)  # outside: larger than any real one
    lead = x.ndim - len(at.inputs)
    places = emit("broadcast", places, shape=seen.shape, dims=range(lead, seen.ndim))
    return cast(best, x.dtype), position(widened(seen), best, places, dims, area)


def position(
    seen: Handle, best: Handle, places: Handle, dims: tuple[int, ...], none: int
) -> Handle:
    """The smallest of `places` where `seen` is `best`; the largest one with a NaN."""
    hit = eq(seen, spread(best, dims, seen.shape))
    first = reduce_min(where(hit, places, none), dims=dims)
    if not seen.dtype.is_float:
        return first
    last = reduce_max(where(isnan(seen), places, -1), dims=dims)
    return where(isnan(best), last, first)


def _register_max_pool(n: int, samples: list[Sample]) -> None:
    @composite(f"max_pool{n}d_with_indices", samples=samples)
    def max_pool_with_indices(
        self: Handle,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
    ) -> tuple[Handle, Handle]:
        """The maximum under each window, and its flat position in the pooled axes; NaN wins."""
        return largest(self, windows(self, n, kernel_size, stride, padding, dilation, ceil_mode))

    @composite(f"max_pool{n}d", samples=samples)
    def max_pool(
        self: Handle,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
    ) -> Handle:
        """The maximum under each window; NaN wins."""
        return largest(self, windows(self, n, kernel_size, stride, padding, dilation, ceil_mode))[0]


_register_max_pool(
    1, [sample(floats(2, 3, 9), (3,), (2,), (1,), (2,), True), sample(floats(3, 6), (2,))]
)
_register_max_pool(
    2,
    [
        sample(floats(2, 3, 6, 7), (2, 3)),
        sample(floats(2, 3, 7, 6), (3, 3), (2, 2), (1, 1), (1, 1), True),
        sample(floats(3, 7, 8), (2, 2), (2, 1), (0, 1), (2, 1)),
    ],
)
_register_max_pool(3, [sample(floats(2, 2, 4, 5, 4), (2, 2, 2), (2, 1, 2), (1, 0, 1))])

# ---------------------------------------------------------------------------------- average


def counts(at: Windows, include_pad: bool) -> list[Handle | int]:
    """The number of elements under the windows, per axis: one number, or i64[outputs] where it varies.

    With include_pad the padding counts, too, but not what hangs over it (ceil mode).
    """
    found: list[Handle | int] = []
    for n, k, s, p, out in zip(at.inputs, at.sizes, at.strides, at.padding, at.outputs):
        low, high = (-p, n + p) if include_pad else (0, n)
        starts = range(-p, -p + out * s, s)
        exact = {min(a + k, high) - max(a, low) for a in starts}
        if len(exact) == 1:
            found.append(exact.pop())
            continue
        start = counting((out,), 0) * s + (-p)
        found.append(minimum(start + k, high) - maximum(start, low))
    return found


def divided(total: Handle, numbers: Sequence[Handle | int], first: int) -> Handle:
    """total / (numbers[0] * numbers[1] * ...); a Handle among them lies along axis first + k."""
    whole = math.prod(m for m in numbers if isinstance(m, int))
    varying = [
        along(m, first + k, total.shape) for k, m in enumerate(numbers) if not isinstance(m, int)
    ]
    if not varying:
        return quotient(total, whole)
    product = math.prod(varying[1:], start=varying[0])
    return quotient(total, product * whole if whole != 1 else product)


def quotient(total: Handle, divisor: Handle | int) -> Handle:
    """total / divisor in the dtype of total; integers are cut towards zero, as in C."""
    if not total.dtype.is_float:
        return emit("trunc_div", total, divisor)
    if isinstance(divisor, int):
        return total / float(divisor)
    return total / cast(divisor, total.dtype)


def averaged(x: Handle, at: Windows, include_pad: bool, divisor: int | None) -> Handle:
    """The mean under each window; `divisor` in place of the number of elements, if given."""
    seen = at.over(widened(x), identity("add", x.dtype))
    total = reduce_sum(seen, dims=at.dims(x))
    numbers: list[Handle | int] = counts(at, include_pad) if divisor is None else [divisor]
    return cast(divided(total, numbers, x.ndim - len(at.inputs)), x.dtype)


def _register_avg_pool(n: int, samples: list[Sample]) -> None:
    @composite(f"avg_pool{n}d", samples=samples)
    def avg_pool(
        self: Handle,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Handle:
        """The mean under each window; the padding counts as zeros unless count_include_pad is False."""
        at = windows(self, n, kernel_size, stride, padding, 1, ceil_mode)
        return averaged(self, at, count_include_pad, divisor_override)


_register_avg_pool(1, [sample(floats(2, 3, 9), (3,), (2,), (1,), True), sample(floats(3, 6), (2,))])
_register_avg_pool(
    2,
    [
        sample(floats(2, 3, 6, 7), (2, 3)),
        sample(floats(2, 3, 7, 6), (3, 3), (2, 2), (1, 1), True, False),
        sample(floats(3, 7, 8), (3, 2), (2, 1), (1, 0), True, True),
        sample(floats(3, 7, 8), (3, 2), (2, 1), (1, 0), False, True, 5),
    ],
)
_register_avg_pool(3, [sample(floats(2, 2, 4, 5, 4), (2, 2, 2), (2, 1, 2), (1, 0, 1), True, False)])
