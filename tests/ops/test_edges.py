"""Corners that samples do not reach: ties, NaN, rows of -inf, no elements, 0-d tensors, odd divisors."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from minicompile.errors import NotNative
from tests.ops.harness import check_composite, decompose_call

INF, NAN = math.inf, math.nan
TIES = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, NAN, 5.0, NAN], [-INF, -INF, -INF, -INF]])
DEAD = torch.tensor([[-INF, -INF], [0.0, -INF], [INF, 1.0], [NAN, 1.0]])
DIVIDENDS = torch.tensor([7.0, -7.0, 0.0, -0.0, INF, -INF, NAN, 1.0, 5.5, -5.5])
DIVISORS = torch.tensor([2.0, -2.0, 3.0, 0.0, -0.0, INF, 1.0, NAN, -0.1, 0.1])
GRID = tuple(torch.cartesian_prod(DIVIDENDS, DIVISORS).unbind(1))
SMALLEST, LARGEST = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max
EXTREME_INTS = torch.tensor([SMALLEST, LARGEST, 0, -1])

CALLS: list[tuple[str, tuple[Any, ...]]] = [
    *((op, (TIES, 1)) for op in ("argmax", "argmin", "max.dim", "min.dim", "cummax", "cummin")),
    *((op, (TIES, [1])) for op in ("amax", "amin", "logsumexp")),
    *((op, (TIES, 1, False)) for op in ("_softmax", "_log_softmax")),
    *((op, (DEAD, 1, False)) for op in ("_softmax", "_log_softmax")),
    ("_safe_softmax", (DEAD, 1)),
    ("logsumexp", (DEAD, [1])),
    ("logsumexp", (torch.zeros(3, 0), [1])),
    *((op, (torch.zeros(0, 3),)) for op in ("sum", "mean", "prod", "all", "any", "nansum")),
    *((op, (torch.zeros(2, 0), [1], True)) for op in ("sum.dim_IntList", "mean.dim")),
    ("var.correction", (torch.zeros(2, 0), [1])),
    ("linalg_vector_norm", (torch.zeros(2, 0), 2, [1])),
    *((op, (torch.tensor(3.0), -1)) for op in ("cumsum", "cummax", "max.dim", "argmax")),
    *((op, (torch.tensor(3.0), [0])) for op in ("amax", "sum.dim_IntList", "var.correction")),
    ("var.correction", (torch.full((2, 7), 0.1),)),
    ("var.correction", (torch.tensor([[1e6, 1e6 + 1, 1e6 + 2]]),)),
    *((op, GRID) for op in ("floor_divide", "remainder.Tensor", "fmod.Tensor", "div.Tensor")),
    *((op, GRID) for op in ("pow.Tensor_Tensor", "atan2", "hypot", "copysign.Tensor")),
    *((op, GRID) for op in ("logaddexp", "logaddexp2", "xlogy.Tensor", "fmax", "fmin", "maximum")),
    *((op, (EXTREME_INTS, 3)) for op in ("floor_divide", "remainder.Scalar", "fmod.Scalar")),
    *((op, (EXTREME_INTS, 2)) for op in ("add.Tensor", "mul.Tensor", "pow.Tensor_Scalar")),
    *((op, (EXTREME_INTS,)) for op in ("neg", "abs", "sum", "bitwise_not", "signbit")),
    ("bitwise_left_shift.Tensor", (EXTREME_INTS, torch.tensor([1, 64, -1, 63]))),
    ("bitwise_right_shift.Tensor", (EXTREME_INTS, torch.tensor([1, 64, -1, 63]))),
    ("add.Tensor", (torch.ones(2, dtype=torch.bfloat16), 0.1)),
    ("mul.Tensor", (torch.ones(2, dtype=torch.bfloat16), 0.1)),
    ("mul.Tensor", (torch.ones(2, dtype=torch.bfloat16), torch.tensor(0.1))),
    ("eq.Scalar", (torch.tensor([0.1, 0.2]), 0.1)),
    ("lt.Scalar", (torch.tensor([0.1], dtype=torch.bfloat16), 0.1)),
    ("clamp", (DIVIDENDS, NAN)),
    ("clamp", (DIVIDENDS, 0.0, -0.0)),
    ("softplus", (torch.tensor([-200.0, 19.9, 20.1, 200.0, INF, -INF]),)),
    ("arange.start_step", (0.1, 1.0, 0.1)),
    ("arange.start_step", (5, -5, -3)),
    ("round", (torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5]),)),
    ("_to_copy", (torch.tensor([1.9, -1.9, 0.0, -0.0]),)),
]


@pytest.mark.parametrize(
    ("overload", "args"), CALLS, ids=[f"{o}-{k}" for k, (o, _) in enumerate(CALLS)]
)
def test_corner(overload: str, args: tuple[Any, ...]) -> None:
    check_composite(overload, *args)


def test_dtype_argument() -> None:
    x = torch.tensor([[1.5, 2.5], [-3.5, 0.0]])
    for dtype in (torch.float64, torch.bfloat16, torch.int64):
        check_composite("sum.dim_IntList", x, [1], dtype=dtype)
        check_composite("cumsum", x, 0, dtype=dtype)
        check_composite("_to_copy", x, dtype=dtype)


def test_half_to_float() -> None:
    x = torch.randn(3, 5).half()
    want = torch.softmax(x, 1, dtype=torch.float32)
    call = decompose_call("_softmax", (x, 1, True))
    assert call.outputs[0].type.dtype.torch == want.dtype


@pytest.mark.parametrize(
    ("overload", "args"),
    [
        ("floor_divide", (torch.tensor([1]), torch.tensor([0]))),
        ("remainder.Scalar", (torch.tensor([1]), 0)),
        ("pow.Tensor_Scalar", (torch.tensor([2]), -1)),
        ("add.Tensor", (torch.ones(2, dtype=torch.complex64), 1)),
        ("exp", (torch.ones(2, dtype=torch.complex64),)),
        ("amax", (torch.ones(0), [])),
        ("full", ((2,), 1j)),
    ],
    ids=str,
)
def test_left_to_pytorch(overload: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(NotNative):
        decompose_call(overload, args)
