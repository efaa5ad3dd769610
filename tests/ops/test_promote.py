"""Promotion agrees with torch.result_type on every pair of dtypes and ranks."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from minicompile.errors import NotNative
from minicompile.ir.types import DTYPES, TensorType, bf16, bool_, f32, i8, promote, u8
from minicompile.ops.build import Builder
from minicompile.ops.promote import constant, number, rounded, tensors

NUMBERS: tuple[Any, ...] = (True, 3, 2.5, 1j)


def operands() -> list[tuple[Any, Any]]:
    """(ours, torch's): each dtype with dimensions and without, and the Python numbers."""
    pairs: list[tuple[Any, Any]] = [(v, v) for v in NUMBERS]
    for d in DTYPES.values():
        for shape in ((2,), ()):
            pairs.append((TensorType(d, shape), torch.ones(shape, dtype=d.torch)))
    return pairs


@pytest.mark.parametrize("default", [torch.float32, torch.float64], ids=str)
def test_promote_is_result_type(default: torch.dtype) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        for (a, x), (b, y) in itertools.product(operands(), repeat=2):
            if not (isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor)):
                continue
            want = torch.result_type(x, y)
            if want != torch.complex32:  # which no stage knows
                assert promote(a, b).torch == want, f"{a}, {b}"
    finally:
        torch.set_default_dtype(before)


def test_three_operands_promote_by_rank_first() -> None:
    # a 0-d f64 does not widen f32 with dimensions, and a Python float does not either
    assert promote(TensorType(f32, (2,)), TensorType(DTYPES["f64"]), 2.5) is f32
    assert promote(TensorType(i8, (2,)), TensorType(u8, (2,)), 1) is DTYPES["i16"]
    assert promote(TensorType(bool_, (2,)), TensorType(i8), 1) is i8


def test_numbers_fit_or_are_left_to_pytorch() -> None:
    assert number(2, f32) == 2.0 and isinstance(number(2, f32), float)
    assert number(2.9, i8) == 2 and number(3, bool_) is True
    assert rounded(0.1, bf16) == torch.tensor(0.1, dtype=torch.bfloat16).item()
    for value, dtype in ((300, u8), (-1, u8), (float("nan"), i8), (1j, f32), (0, DTYPES["c64"])):
        with pytest.raises(NotNative):
            number(value, dtype)


def test_constants_of_half_floats_are_cast_from_f32() -> None:
    with Builder("t") as b:
        made = constant(0.1, bf16, (3,))
        (other, same) = tensors(2, made)
    assert [n.op for n in b.nodes] == ["full", "cast", "full", "cast"]
    assert made.dtype is bf16 and other.dtype is bf16 and same is made
