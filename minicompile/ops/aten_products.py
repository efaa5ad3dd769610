"""Other products and distances: cross, trilinear, Euclidean and p-norm distances."""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.errors import NotNative
from minicompile.ops.aten_rearrange import roll
from minicompile.ops.axes import axis, inserted
from minicompile.ops.build import Handle, broadcast_all, broadcast_shapes, broadcast_to
from minicompile.ops.elementwise import abs as absolute
from minicompile.ops.elementwise import ne, pow, sqrt
from minicompile.ops.promote import cast, common_dtype, widened
from minicompile.ops.reduction import reduce_max, reduce_sum
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats


@composite(
    "linalg_cross",
    samples=[sample(floats(2, 3), floats(2, 3)), sample(floats(3, 1), floats(3, 4), dim=0)],
)
def cross(self: Handle, other: Handle, *, dim: int = -1) -> Handle:
    """The vector product along an axis of size 3."""
    dtype = common_dtype(self, other)
    a, b = broadcast_all(widened(cast(self, dtype)), widened(cast(other, dtype)))
    d = axis(dim, a.ndim)
    return cast(roll(a, -1, d) * roll(b, -2, d) - roll(a, -2, d) * roll(b, -1, d), dtype)


@composite(
    "_trilinear",
    samples=[sample(floats(2, 3), floats(5, 3, 4), floats(2, 4), (1, 3), (0,), (1, 2), (2, 3))],
)
def trilinear(
    i1: Handle,
    i2: Handle,
    i3: Handle,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Handle:
    """The product of three tensors with new axes at `expand1` ..., summed over the axes `sumdim`."""
    xs = [
        inserted(widened(x), *sorted(e)) for x, e in ((i1, expand1), (i2, expand2), (i3, expand3))
    ]
    product = xs[0] * xs[1] * xs[2]
    return cast(reduce_sum(product, dims=tuple(sumdim)), i1.dtype)


def _distances(x1: Handle, x2: Handle, p: float) -> Handle:
    """[..., i, d], [..., j, d] -> [..., i, j]: the p-norm of all differences."""
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    a = inserted(broadcast_to(x1, (*batch, *x1.shape[-2:])), len(batch) + 1)
    b = inserted(broadcast_to(x2, (*batch, *x2.shape[-2:])), len(batch))
    difference = a - b
    last = (difference.ndim - 1,)
    if p == 2:
        return sqrt(reduce_sum(difference * difference, dims=last))
    return _norm(absolute(difference), p, last)


def _norm(size: Handle, p: float, dims: tuple[int, ...]) -> Handle:
    """The p-norm of sizes: their number that is not 0, their sum, their maximum, or by powers."""
    if p == 0:
        return reduce_sum(cast(ne(size, 0.0), size.dtype), dims=dims)
    if p == 1:
        return reduce_sum(size, dims=dims)
    if p == float("inf"):
        return reduce_max(size, dims=dims)
    return pow(reduce_sum(pow(size, p), dims=dims), 1.0 / p)


_POINTS = (floats(2, 4, 3), floats(2, 5, 3))


@composite("_cdist_forward", samples=[sample(*_POINTS, p, None) for p in (0.0, 1.0, 1.5, 2.0)])
def cdist_forward(x1: Handle, x2: Handle, p: float, compute_mode: int | None) -> Handle:
    """The p-norms of all differences of rows."""
    if x1.shape[-1] == 0:
        raise NotNative("distances of rows without elements")
    return cast(_distances(widened(x1), widened(x2), float(p)), x1.dtype)


@composite("_euclidean_dist", samples=[sample(*_POINTS)])
def euclidean_dist(x1: Handle, x2: Handle) -> Handle:
    """The lengths of all differences of rows; ATen's kernel multiplies out the squares."""
    return cdist_forward(x1, x2, 2.0, None)
