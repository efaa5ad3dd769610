"""Losses: an elementwise formula, then the mean or the sum of it.

`reduction` is ATen's number: 0 none, 1 mean, 2 sum.
"""

from __future__ import annotations

from collections.abc import Callable

from minicompile.errors import NotNative
from minicompile.ir.types import i64
from minicompile.ops.aten_norm import mean_over
from minicompile.ops.axes import counting, filled
from minicompile.ops.build import Handle, broadcast_all, emit
from minicompile.ops.elementwise import abs as absolute
from minicompile.ops.elementwise import exp, le, log, log1p, lt, maximum, ne, where
from minicompile.ops.promote import cast, common_dtype, widened
from minicompile.ops.reduction import reduce_sum
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats, ints

NONE, MEAN, SUM = 0, 1, 2
PAIR = (floats(3, 4), floats(3, 4))


def reduced(x: Handle, reduction: int) -> Handle:
    """x itself, its mean or its sum."""
    dims = tuple(range(x.ndim))
    if reduction == NONE:
        return x
    return mean_over(x, dims) if reduction == MEAN else reduce_sum(x, dims=dims)


def compared(self: Handle, target: Handle, reduction: int, f: Callable[..., Handle]) -> Handle:
    """The loss f(self, target) of promoted and broadcast operands; half floats computed in f32."""
    dtype = common_dtype(self, target)
    if not dtype.is_float:
        raise NotNative("a loss of integers")
    x, y = broadcast_all(widened(cast(self, dtype)), widened(cast(target, dtype)))
    return cast(reduced(f(x, y), reduction), dtype)


_SAMPLES = [sample(*PAIR), sample(*PAIR, NONE), sample(floats(3, 4), floats(4), SUM)]


@composite("mse_loss", samples=_SAMPLES)
def mse_loss(self: Handle, target: Handle, reduction: int = MEAN) -> Handle:
    """``(self - target)**2``."""
    return compared(self, target, reduction, lambda x, y: (x - y) * (x - y))


@composite(
    "smooth_l1_loss", samples=[*_SAMPLES, sample(*PAIR, NONE, 0.5), sample(*PAIR, NONE, 0.0)]
)
def smooth_l1_loss(
    self: Handle, target: Handle, reduction: int = MEAN, beta: float = 1.0
) -> Handle:
    """``d*d / (2*beta)`` for ``d = |self - target| < beta``, else ``d - beta/2``."""
    if beta < 0:
        raise NotNative("PyTorch raises for a negative beta")

    def loss(x: Handle, y: Handle) -> Handle:
        d = absolute(x - y)
        return where(lt(d, beta), d * d * 0.5 / beta, d - 0.5 * beta) if beta else d

    return compared(self, target, reduction, loss)


@composite("huber_loss", samples=[*_SAMPLES, sample(*PAIR, NONE, 0.5)])
def huber_loss(self: Handle, target: Handle, reduction: int = MEAN, delta: float = 1.0) -> Handle:
    """``d*d / 2`` for ``d = |self - target| <= delta``, else ``delta * (d - delta/2)``."""
    if delta <= 0:
        raise NotNative("PyTorch raises for a delta that is not positive")

    def loss(x: Handle, y: Handle) -> Handle:
        d = absolute(x - y)
        return where(le(d, delta), d * d * 0.5, (d - 0.5 * delta) * delta)

    return compared(self, target, reduction, loss)


@composite("soft_margin_loss", samples=_SAMPLES)
def soft_margin_loss(self: Handle, target: Handle, reduction: int = MEAN) -> Handle:
    """``log(1 + exp(-target * self))``."""
    return compared(self, target, reduction, lambda x, y: log1p(exp(-(y * x))))


_CHANCES = floats(3, 4, low=0.01, high=0.99)


@composite(
    "binary_cross_entropy",
    samples=[sample(_CHANCES, _CHANCES), sample(_CHANCES, _CHANCES, floats(4), NONE)],
)
def binary_cross_entropy(
    self: Handle, target: Handle, weight: Handle | None = None, reduction: int = MEAN
) -> Handle:
    """``-(target * log(self) + (1 - target) * log(1 - self))``, logarithms not below -100."""
    w = None if weight is None else widened(weight)

    def loss(x: Handle, y: Handle) -> Handle:
        value = (y - 1.0) * maximum(log1p(-x), -100.0) - y * maximum(log(x), -100.0)
        return value if w is None else value * w

    return compared(self, target, reduction, loss)


@composite(
    "binary_cross_entropy_with_logits",
    samples=[sample(*PAIR), sample(*PAIR, floats(4), floats(4, low=0.5, high=2.0), NONE)],
)
def binary_cross_entropy_with_logits(
    self: Handle,
    target: Handle,
    weight: Handle | None = None,
    pos_weight: Handle | None = None,
    reduction: int = MEAN,
) -> Handle:
    """binary_cross_entropy of sigmoid(self), without overflow; pos_weight weighs the positive part.

    ``log(1 + exp(-x)) = log1p(exp(-|x|)) + max(-x, 0)``.
    """
    w, p = (None if t is None else widened(t) for t in (weight, pos_weight))

    def loss(x: Handle, y: Handle) -> Handle:
        softplus = log1p(exp(-absolute(x))) + maximum(-x, 0.0)
        scaled = softplus if p is None else ((p - 1.0) * y + 1.0) * softplus
        value = (1.0 - y) * x + scaled
        return value if w is None else value * w

    return compared(self, target, reduction, loss)


_NLL = [
    sample(floats(3, 5), ints(3, low=0, high=5), None, MEAN, -100),
    sample(floats(3, 5), ints(3, low=0, high=5), floats(5, low=0.5, high=2.0), NONE, 2),
    sample(floats(3, 5), ints(3, low=0, high=5), floats(5, low=0.5, high=2.0), MEAN, 1),
]


@composite(
    "nll_loss_forward", samples=[*_NLL, sample(floats(5), ints(low=0, high=5), None, SUM, -1)]
)
@composite(
    "nll_loss2d_forward",
    samples=[
        sample(floats(2, 5, 3, 2), ints(2, 3, 2, low=0, high=5), None, MEAN, -100),
        sample(floats(2, 5, 3, 2), ints(2, 3, 2, low=0, high=5), floats(5), NONE, 2),
    ],
)
def nll_loss_forward(
    self: Handle, target: Handle, weight: Handle | None, reduction: int, ignore_index: int
) -> tuple[Handle, Handle]:
    """``-weight[t] * self[n, t, ...]`` for the class t = target[n, ...]; also the sum of the weights.

    Where t is ignore_index, both count as 0. The mean divides by the sum of the weights.
    """
    x, t = widened(self), cast(target, i64)
    kept = ne(t, ignore_index)
    t = where(kept, t, 0)
    axes = [counting(t.shape, d) for d in range(t.ndim)]
    places = [*axes[:1], t, *axes[1:]]  # the class is axis 1, or the only one
    picked = emit("gather", x, *places, dims=range(x.ndim))
    ones = filled(t.shape, 1.0, x.dtype)
    scale = ones if weight is None else emit("gather", cast(weight, x.dtype), t, dims=(0,))
    scale = where(kept, scale, 0.0)
    loss = where(kept, -(picked * scale), 0.0)
    dims = tuple(range(t.ndim))
    total, whole = reduce_sum(loss, dims=dims), reduce_sum(scale, dims=dims)
    value = total / whole if reduction == MEAN else total
    if reduction == NONE and t.ndim:
        value, whole = loss, filled((), 0.0, x.dtype)
    return cast(value, self.dtype), cast(whole, self.dtype)
