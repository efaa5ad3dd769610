"""Recurrent cells: one step of an LSTM, a GRU or an Elman network.

The gates of a cell lie side by side in one row: i, f, g, o of an LSTM; r, z, n of a GRU.
Source: aten/src/ATen/native/RNN.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicompile.ops.aten_matmul import linear
from minicompile.ops.aten_slice import pieces
from minicompile.ops.aten_special import sigmoid
from minicompile.ops.build import Handle, broadcast_to
from minicompile.ops.elementwise import maximum, tanh
from minicompile.ops.promote import cast, widened
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats

Maybe = Handle | None


def _biased(x: Handle, bias: Maybe) -> Handle:
    """x + bias in the computing dtype."""
    x = widened(x)
    return x if bias is None else x + broadcast_to(widened(bias), x.shape)


def _parts(x: Handle, n: int) -> tuple[Handle, ...]:
    """The last axis in n equal parts."""
    return pieces(x, [x.shape[-1] // n] * n, x.ndim - 1)


def _lstm(
    inputs: Handle, hidden: Handle, cx: Handle, input_bias: Maybe, hidden_bias: Maybe
) -> tuple[Handle, Handle, list[Handle]]:
    """``c = f*c + i*g; h = o*tanh(c)``: (h, c, the gates), from the two products before the gates."""
    i, f, g, o = _parts(_biased(inputs, input_bias) + _biased(hidden, hidden_bias), 4)
    gates = [sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)]
    c = gates[1] * widened(cx) + gates[0] * gates[2]
    return gates[3] * tanh(c), c, gates


_CELL = (floats(2, 3), floats(2, 4))


@composite(
    "lstm_cell",
    samples=[
        sample(
            floats(2, 3), (floats(2, 4), floats(2, 4)), floats(16, 3), floats(16, 4), floats(16),
            floats(16),
        ),
        sample(floats(2, 3), (floats(2, 4), floats(2, 4)), floats(16, 3), floats(16, 4)),
    ],
)  # fmt: skip
def lstm_cell(
    input: Handle,
    hx: Sequence[Handle],
    w_ih: Handle,
    w_hh: Handle,
    b_ih: Maybe = None,
    b_hh: Maybe = None,
) -> tuple[Handle, Handle]:
    """One step of an LSTM: (h, c) from the input and hx = (h, c)."""
    products = linear(widened(input), w_ih), linear(widened(hx[0]), w_hh)
    h, c, _ = _lstm(*products, hx[1], b_ih, b_hh)
    return cast(h, input.dtype), cast(c, input.dtype)


def _gru(
    inputs: Handle, hidden: Handle, hx: Handle, input_bias: Maybe, hidden_bias: Maybe
) -> Handle:
    """``r, z = sigmoid(...); n = tanh(x_n + r*h_n); h = n + z*(h - n)``."""
    x_r, x_z, x_n = _parts(_biased(inputs, input_bias), 3)
    h_r, h_z, h_n = _parts(_biased(hidden, hidden_bias), 3)
    r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
    n = tanh(x_n + r * h_n)
    return n + z * (widened(hx) - n)


@composite(
    "gru_cell",
    samples=[sample(*_CELL, floats(12, 3), floats(12, 4), floats(12), floats(12))],
)
def gru_cell(
    input: Handle, hx: Handle, w_ih: Handle, w_hh: Handle, b_ih: Maybe = None, b_hh: Maybe = None
) -> Handle:
    """One step of a GRU: the new hidden state."""
    products = linear(widened(input), w_ih), linear(widened(hx), w_hh)
    return cast(_gru(*products, hx, b_ih, b_hh), input.dtype)


def _elman(
    input: Handle, hx: Handle, w_ih: Handle, w_hh: Handle, b_ih: Maybe, b_hh: Maybe
) -> Handle:
    """The sum of both products with their biases."""
    x, h = linear(widened(input), w_ih), linear(widened(hx), w_hh)
    return _biased(x, b_ih) + _biased(h, b_hh)


_ELMAN = [sample(*_CELL, floats(4, 3), floats(4, 4), floats(4), floats(4))]


@composite("rnn_tanh_cell", samples=_ELMAN)
def rnn_tanh_cell(
    input: Handle, hx: Handle, w_ih: Handle, w_hh: Handle, b_ih: Maybe = None, b_hh: Maybe = None
) -> Handle:
    """One step of an Elman network with tanh."""
    return cast(tanh(_elman(input, hx, w_ih, w_hh, b_ih, b_hh)), input.dtype)


@composite("rnn_relu_cell", samples=_ELMAN)
def rnn_relu_cell(
    input: Handle, hx: Handle, w_ih: Handle, w_hh: Handle, b_ih: Maybe = None, b_hh: Maybe = None
) -> Handle:
    """One step of an Elman network with relu."""
    return cast(maximum(_elman(input, hx, w_ih, w_hh, b_ih, b_hh), 0.0), input.dtype)
