"""Activations. All compute in f32 for half floats and round once.

Source of the formulas: aten/src/ATen/native/cpu/Activation.cpp; each keeps NaN.
"""

from __future__ import annotations

import math

from minicompile.errors import NotNative
from minicompile.ops import elementwise as el
from minicompile.ops.aten_extremes import at_least, at_most
from minicompile.ops.axes import axis, cut
from minicompile.ops.build import Handle
from minicompile.ops.promote import arithmetic, common_dtype, floating, number
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats, ints

ONE = [sample(floats(3, 4)), sample(floats(5, low=-30, high=30))]
Number = bool | int | float


@composite("sigmoid", samples=[*ONE, sample(ints(9))])
def sigmoid(self: Handle) -> Handle:
    """1 / (1 + exp(-x)); an overflowing exp gives the right 0."""
    return floating(lambda x: 1.0 / (1.0 + el.exp(-x)), self)


@composite("silu", samples=ONE)
def silu(self: Handle) -> Handle:
    """x * sigmoid(x), in one quotient."""
    return arithmetic(lambda x: x / (1.0 + el.exp(-x)), self)


@composite("relu", samples=[*ONE, sample(ints(9))])
def relu(self: Handle) -> Handle:
    """0 where x < 0, else x: NaN and -0.0 stay."""
    return arithmetic(lambda x: at_least(x, number(0, x.dtype)), self)


@composite("gelu", samples=[*ONE, *(sample(*s.args, approximate="tanh") for s in ONE)])
def gelu(self: Handle, approximate: str = "none") -> Handle:
    """x * Phi(x) with the normal distribution Phi: by erf, or by its tanh approximation.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv:1606.08415.
    """

    def exact(x: Handle) -> Handle:
        return x * 0.5 * (1.0 + el.erf(x * math.sqrt(0.5)))

    def by_tanh(x: Handle) -> Handle:
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1.0 + el.tanh(inner))

    return arithmetic(by_tanh if approximate == "tanh" else exact, self)


@composite("softplus", samples=[*ONE, sample(floats(9), 2, 1), sample(floats(9), 0.5, 3.0)])
def softplus(self: Handle, beta: Number = 1, threshold: Number = 20) -> Handle:
    """log(1 + exp(beta x)) / beta; x itself where beta x > threshold."""

    def formula(x: Handle) -> Handle:
        scaled = x * float(beta)
        return el.where(scaled > float(threshold), x, el.log1p(el.exp(scaled)) / float(beta))

    return arithmetic(formula, self)


@composite("mish", samples=ONE)
def mish(self: Handle) -> Handle:
    """x * tanh(log(1 + exp(x)))."""
    return arithmetic(lambda x: x * el.tanh(el.log1p(el.exp(x))), self)


@composite("log_sigmoid_forward", samples=ONE)
def log_sigmoid_forward(self: Handle) -> tuple[Handle, Handle]:
    """(min(x, 0) - log(1 + exp(-|x|)), exp(-|x|)); the second is kept for the backward pass."""

    def formula(x: Handle) -> Handle:
        return el.minimum(x, 0.0) - el.log1p(el.exp(-el.abs(x)))

    buffer = arithmetic(lambda x: el.exp(-el.abs(x)), self)
    return arithmetic(formula, self), buffer


@composite("elu", samples=[*ONE, sample(floats(9), 1.6732, 1.0507, 2)])
def elu(self: Handle, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Handle:
    """scale * x above 0, scale * alpha * (exp(input_scale * x) - 1) below."""

    def formula(x: Handle) -> Handle:
        low = el.expm1(x * float(input_scale)) * (float(alpha) * float(scale))
        return el.where(x <= 0.0, low, x * float(scale))

    return arithmetic(formula, self)


@composite("celu", samples=[*ONE, sample(floats(9), 2.0)])
def celu(self: Handle, alpha: Number = 1.0) -> Handle:
    """x above 0, alpha * (exp(x / alpha) - 1) below."""
    if alpha == 0:
        raise NotNative("PyTorch raises for alpha=0")
    return elu(self, alpha, 1.0, 1.0 / float(alpha))


@composite("selu", samples=ONE)
def selu(self: Handle) -> Handle:
    """elu with the constants that keep mean 0 and variance 1 (arXiv:1706.02515)."""
    return elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@composite("leaky_relu", samples=[*ONE, sample(floats(9), 0.3)])
def leaky_relu(self: Handle, negative_slope: Number = 0.01) -> Handle:
    """x above 0, negative_slope * x below."""
    return arithmetic(lambda x: el.where(x > 0.0, x, x * float(negative_slope)), self)


@composite("_prelu_kernel", samples=[sample(floats(2, 3, 4), floats(1, 3, 1))])
def prelu(self: Handle, weight: Handle) -> Handle:
    """x above 0, weight * x below."""
    return arithmetic(lambda x, w: el.where(x > 0.0, x, w * x), self, weight)


@composite("hardtanh", samples=[*ONE, sample(floats(9), 0, 6), sample(ints(9), -1, 2)])
def hardtanh(self: Handle, min_val: Number = -1, max_val: Number = 1) -> Handle:
    """x kept within min_val ... max_val."""
    low, high = (number(v, self.dtype) for v in (min_val, max_val))
    return arithmetic(lambda x: at_most(at_least(x, low), high), self)


@composite("relu6", samples=ONE)
def relu6(self: Handle) -> Handle:
    """x kept within 0 ... 6."""
    return hardtanh(self, 0, 6)


def _ramp(x: Handle) -> Handle:
    """x + 3 kept within 0 ... 6."""
    return at_most(at_least(x + 3.0, 0.0), 6.0)


@composite("hardsigmoid", samples=ONE)
def hardsigmoid(self: Handle) -> Handle:
    """A straight line from 0 at -3 to 1 at 3."""
    return arithmetic(lambda x: _ramp(x) / 6.0, self)


@composite("hardswish", samples=ONE)
def hardswish(self: Handle) -> Handle:
    """x * hardsigmoid(x)."""
    return arithmetic(lambda x: x * _ramp(x) / 6.0, self)


@composite("softshrink", samples=[*ONE, sample(floats(9), 1.0)])
def softshrink(self: Handle, lambd: Number = 0.5) -> Handle:
    """x moved towards 0 by lambd, and 0 where it would cross."""
    edge = float(lambd)

    def formula(x: Handle) -> Handle:
        outside = el.where(x > edge, x - edge, x + edge)
        return el.where((x >= -edge) & (x <= edge), 0.0, outside)

    return arithmetic(formula, self)


@composite("hardshrink", samples=[*ONE, sample(floats(9), 1.0)])
def hardshrink(self: Handle, lambd: Number = 0.5) -> Handle:
    """0 within -lambd ... lambd, x outside."""
    edge = float(lambd)
    return arithmetic(lambda x: el.where((x >= -edge) & (x <= edge), 0.0, x), self)


@composite("threshold", samples=[sample(floats(9), 0.1, 20), sample(ints(9), 1, 7)])
def threshold(self: Handle, threshold: Number, value: Number) -> Handle:
    """x above the threshold, `value` otherwise; NaN stays."""
    edge, low = (number(v, self.dtype) for v in (threshold, value))
    return arithmetic(lambda x: el.where(x <= edge, low, x), self)


@composite("glu", samples=[sample(floats(3, 4)), sample(floats(4, 3), 0)])
def glu(self: Handle, dim: int = -1) -> Handle:
    """The first half along `dim`, times the sigmoid of the second half."""
    d = axis(dim, self.ndim)
    half = self.shape[d] // 2
    a, b = cut(self, d, 0, half), cut(self, d, half, 2 * half)
    return arithmetic(lambda a, b: a * (1.0 / (1.0 + el.exp(-b))), a, b, dtype=common_dtype(a))
