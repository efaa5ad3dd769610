"""Adaptive pooling: a given number of positions, bins of (almost) equal size.

Position o of O averages the inputs ``floor(o * I / O) ... ceil((o + 1) * I / O) - 1``.  Where O divides I
these are ordinary windows; else the bins have different sizes, and elements are gathered.
Source: start_index and end_index in aten/src/ATen/native/AdaptivePooling.h.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.ops.aten_pool import Windows, averaged, divided, largest, position
from minicompile.ops.axes import along, counting, moved
from minicompile.ops.build import Handle, emit
from minicompile.ops.elementwise import minimum, where
from minicompile.ops.promote import cast, widened
from minicompile.ops.reduction import reduce_max, reduce_sum
from minicompile.ops.registry import Sample, composite, identity, sample
from minicompile.ops.samples import floats

Ints = int | Sequence[int]


def _regular(x: Handle, outputs: tuple[int, ...]) -> Windows | None:
    """The windows, where all bins of an axis have one size and do not overlap."""
    inputs = x.shape[x.ndim - len(outputs) :]
    if any(o == 0 or n % o for n, o in zip(inputs, outputs)):
        return None
    sizes = tuple(n // o for n, o in zip(inputs, outputs))
    n = len(outputs)
    return Windows(inputs, sizes, sizes, (0,) * n, (1,) * n, False)


class Bins:
    """The bins of x, gathered: `seen` is [..., outputs, sizes], `inside` says what counts.

    `sizes` are the largest bins'; smaller bins repeat their last element, which does not count.
    """

    def __init__(self, x: Handle, outputs: tuple[int, ...]) -> None:
        n, lead = len(outputs), x.ndim - len(outputs)
        self.inputs = x.shape[lead:]
        sizes = [_widest(i, o) for i, o in zip(self.inputs, outputs)]
        grid = (*outputs, *sizes)
        self.dims = tuple(range(x.ndim, x.ndim + n))
        self.counts: list[Handle | int] = []
        self.index: list[Handle] = []
        conds = []
        for k, (size, out) in enumerate(zip(self.inputs, outputs)):
            start = emit("floor_div", counting((out,), 0) * size, out)
            stop = emit("floor_div", counting((out,), 0) * size + (size + out - 1), out)
            self.counts.append(stop - start)
            tap = counting(grid, n + k)
            conds.append(tap < along(stop - start, k, grid))
            self.index.append(minimum(along(start, k, grid) + tap, along(stop, k, grid) - 1))
        inside = conds[0]
        for cond in conds[1:]:
            inside = inside & cond
        seen = emit("gather", x, *self.index, dims=tuple(range(lead, x.ndim)))
        self.seen = moved(seen, range(2 * n), range(lead, lead + 2 * n))
        self.inside = self.along(inside)

    def along(self, v: Handle) -> Handle:
        """A tensor over [outputs, sizes] seen with the shape of `seen`."""
        lead = self.seen.ndim - v.ndim
        return emit("broadcast", v, shape=self.seen.shape, dims=range(lead, self.seen.ndim))

    def places(self) -> Handle:
        """The flat position in the pooled axes."""
        flat = self.index[0]
        for n, index in zip(self.inputs[1:], self.index[1:]):
            flat = flat * n + index
        return self.along(flat)


def _widest(n: int, out: int) -> int:
    """The size of the largest of `out` bins of n elements."""
    return max((-(-(o + 1) * n // out) - o * n // out for o in range(out)), default=0)


def _averaged(x: Handle, outputs: tuple[int, ...]) -> Handle:
    at = _regular(x, outputs)
    if at is not None:
        return averaged(x, at, True, None)
    bins = Bins(x, outputs)
    seen = where(bins.inside, widened(bins.seen), identity("add", x.dtype))
    total = reduce_sum(seen, dims=bins.dims)
    return cast(divided(total, bins.counts, x.ndim - len(outputs)), x.dtype)


def _largest(x: Handle, outputs: tuple[int, ...]) -> tuple[Handle, Handle]:
    at = _regular(x, outputs)
    if at is not None:
        return largest(x, at)
    bins = Bins(x, outputs)
    seen = where(bins.inside, widened(bins.seen), identity("max", x.dtype))
    best = reduce_max(seen, dims=bins.dims)
    return cast(best, x.dtype), position(seen, best, bins.places(), bins.dims, 2**62)


def _outputs(x: Handle, n: int, output_size: Sequence[int | None] | int) -> tuple[int, ...]:
    """The sizes asked for; None keeps one."""
    sizes = (output_size,) * n if isinstance(output_size, int) else tuple(output_size)
    sizes = sizes * n if len(sizes) == 1 else sizes
    return tuple(x.shape[x.ndim - n + k] if o is None else o for k, o in enumerate(sizes))


def _register(n: int, average: tuple[str, ...], samples: list[Sample]) -> None:
    @composite(*average, samples=samples)
    def adaptive_avg_pool(self: Handle, output_size: Ints) -> Handle:
        """The means of output_size bins per axis, of (almost) equal size."""
        return _averaged(self, _outputs(self, n, output_size))

    @composite(f"adaptive_max_pool{n}d", samples=samples)
    def adaptive_max_pool(self: Handle, output_size: Ints) -> tuple[Handle, Handle]:
        """The maxima of output_size bins per axis, and their flat positions in the pooled axes."""
        return _largest(self, _outputs(self, n, output_size))


_register(1, ("adaptive_avg_pool1d",), [sample(floats(2, 3, 7), (3,)), sample(floats(2, 6), (2,))])
_register(
    2,
    ("adaptive_avg_pool2d", "_adaptive_avg_pool2d"),
    [
        sample(floats(2, 3, 6, 8), (1, 1)),
        sample(floats(2, 3, 6, 8), (3, 2)),
        sample(floats(2, 3, 5, 7), (3, 4)),
        sample(floats(3, 2, 4), (3, 5)),
    ],
)
_register(
    3,
    ("adaptive_avg_pool3d", "_adaptive_avg_pool3d"),
    [sample(floats(1, 2, 4, 6, 4), (2, 3, 1)), sample(floats(1, 2, 4, 5, 3), (3, 2, 2))],
)
