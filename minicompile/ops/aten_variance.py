"""Variances, standard deviations and vector norms."""

from __future__ import annotations

import math

from minicompile.errors import NotNative
from minicompile.ir.types import DType, bool_, f32, f64
from minicompile.ops import elementwise as el
from minicompile.ops.aten_arithmetic import sub
from minicompile.ops.axes import axis, spread
from minicompile.ops.build import Handle
from minicompile.ops.promote import cast, widened
from minicompile.ops.reducing import Dims, axes_of, count, extreme, kept, over
from minicompile.ops.reduction import reduce_sum
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats

Number = bool | int | float
SAMPLES = [
    sample(floats(3, 4)),
    sample(floats(3, 4), 1),
    sample(floats(3, 4, 2), (0, -1), correction=0, keepdim=True),
    sample(floats(3, 4), (1,), correction=1.5),
    sample(floats(1, 4), (0,)),
    sample(floats(), correction=0),
]


def moments(x: Handle, dims: tuple[int, ...], correction: Number) -> tuple[Handle, Handle]:
    """(variance, mean) of floats over axes, in two passes: the mean, then the squared distances.

    A large common offset cancels in x - mean, and costs the digits that the mean lacks: so f32 is
    computed in f64, the dtype in which eager's Welford recurrence accumulates.
    """
    n = count(x, dims)
    wide = cast(x, f64) if x.dtype is f32 else widened(x)
    mean = over(reduce_sum, wide, dims) / float(n)
    distance = wide - spread(mean, dims, x.shape)
    squares = over(reduce_sum, distance * distance, dims)
    return squares / float(max(n - correction, 0)), mean


def _variance(
    x: Handle, dim: Dims, correction: Number | None, keepdim: bool, root: bool
) -> tuple[Handle, Handle]:
    """(variance or its root, mean) as ATen asks for them, still in the computing dtype."""
    if not x.dtype.is_float:
        raise NotNative("variances are of floats")
    dims = axes_of(x, dim)
    variance, mean = moments(x, dims, 1 if correction is None else correction)
    variance = cast(el.sqrt(variance) if root else variance, x.dtype)
    return kept(variance, x, dims, keepdim), kept(mean, x, dims, keepdim)


@composite("var.correction", samples=SAMPLES)
def var(
    self: Handle, dim: Dims = None, correction: Number | None = None, keepdim: bool = False
) -> Handle:
    """sum((x - mean)**2) / (n - correction) over the axes `dim`; None and () mean all."""
    return _variance(self, dim, correction, keepdim, root=False)[0]


@composite("std.correction", samples=SAMPLES)
def std(
    self: Handle, dim: Dims = None, correction: Number | None = None, keepdim: bool = False
) -> Handle:
    """The square root of `var`."""
    return _variance(self, dim, correction, keepdim, root=True)[0]


@composite("var_mean.correction", samples=SAMPLES)
def var_mean(
    self: Handle, dim: Dims = None, correction: Number | None = None, keepdim: bool = False
) -> tuple[Handle, Handle]:
    """(variance, mean) over the axes `dim`."""
    variance, mean = _variance(self, dim, correction, keepdim, root=False)
    return variance, cast(mean, self.dtype)


@composite("std_mean.correction", samples=SAMPLES)
def std_mean(
    self: Handle, dim: Dims = None, correction: Number | None = None, keepdim: bool = False
) -> tuple[Handle, Handle]:
    """(standard deviation, mean) over the axes `dim`."""
    deviation, mean = _variance(self, dim, correction, keepdim, root=True)
    return deviation, cast(mean, self.dtype)


# ------------------------------------------------------------------------------ norms

ORDERS = (0, 0.5, 1, 2, 3, math.inf, -math.inf)


def vector_norm(x: Handle, order: Number, dims: tuple[int, ...]) -> Handle:
    """(sum |x|**order) ** (1/order) of floats over axes; inf, -inf: largest, smallest; 0: how many not 0."""
    size = el.abs(x)
    if abs(order) == math.inf:
        if dims and not count(x, dims):
            raise NotNative("PyTorch raises for the extreme of no elements")
        return extreme(order > 0, size, dims)
    if order == 0:
        return over(reduce_sum, cast(cast(x, bool_), x.dtype), dims)
    if order == 1:
        return over(reduce_sum, size, dims)
    if order == 2:
        return el.sqrt(over(reduce_sum, x * x, dims))
    return el.pow(over(reduce_sum, el.pow(size, float(order)), dims), 1.0 / float(order))


@composite(
    "linalg_vector_norm",
    samples=[sample(floats(3, 4), order) for order in ORDERS]
    + [sample(floats(3, 4), 2, (1,), True), sample(floats(3, 4), 3, (0,)), sample(floats(), 2)],
)
def linalg_vector_norm(
    self: Handle,
    ord: Number = 2,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Handle:
    """The vector norm of order `ord` over the axes `dim`; None means all."""
    result = dtype or self.dtype
    if not result.is_float:
        raise NotNative("norms are of floats")
    x, dims = widened(cast(self, result)), axes_of(self, dim)
    return kept(cast(vector_norm(x, ord, dims), result), self, dims, keepdim)


@composite("norm.Scalar", samples=[sample(floats(3, 4), p) for p in ORDERS])
def norm_all(self: Handle, p: Number = 2) -> Handle:
    """The norm of order p of all elements."""
    return linalg_vector_norm(self, p)


@composite("norm.ScalarOpt_dtype", samples=[sample(floats(3, 4), 2, dtype=f64)])
def norm_all_in(self: Handle, p: Number | None, dtype: DType) -> Handle:
    """The norm of order p (None: 2) of all elements, computed in another dtype."""
    return linalg_vector_norm(self, 2 if p is None else p, dtype=dtype)


@composite("norm.ScalarOpt_dim", samples=[sample(floats(3, 4), p, (1,)) for p in (None, 1, 3)])
def norm_over(self: Handle, p: Number | None, dim: Dims, keepdim: bool = False) -> Handle:
    """The norm of order p (None: 2) over the axes `dim`."""
    return linalg_vector_norm(self, 2 if p is None else p, dim, keepdim)


@composite("dist", samples=[sample(floats(3, 4), floats(4), p) for p in ORDERS])
def dist(self: Handle, other: Handle, p: Number = 2) -> Handle:
    """The norm of order p of self - other."""
    return linalg_vector_norm(sub(self, other), p)


@composite("renorm", samples=[sample(floats(3, 4, 2), p, 1, 0.7) for p in (1, 2, 3)])
def renorm(self: Handle, p: Number, dim: int, maxnorm: Number) -> Handle:
    """Slices along `dim` whose norm of order p exceeds maxnorm, scaled down to it.

    Source: renorm_scale_factor_impl in aten/src/ATen/native/cpu/RenormKernel.cpp.
    """
    x = widened(self)
    dims = tuple(d for d in range(x.ndim) if d != axis(dim, x.ndim))
    norm = vector_norm(x, p, dims)
    factor = el.where(norm > float(maxnorm), float(maxnorm) / (norm + 1e-7), 1.0)
    return cast(x * spread(factor, dims, x.shape), self.dtype)
