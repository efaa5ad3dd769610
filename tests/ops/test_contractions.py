"""Matrix products and convolutions over many shapes; what they become."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from minicompile.errors import NotNative
from tests.ops.harness import check_composite, decompose_call

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    g = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


MATMULS = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (2, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (1, 4, 5)),
    ((6, 1, 3, 4), (2, 4, 5)),
    ((7, 1, 2, 3, 4), (6, 1, 4, 1)),
    ((2, 3, 4), (4,)),
    ((0, 3, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize(("a", "b"), MATMULS)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check_composite("matmul", randn(*a), randn(*b), tolerance=CLOSE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64])
def test_products_of_other_dtypes(dtype: torch.dtype) -> None:
    a, b = (randn(3, 4) * 3).to(dtype), (randn(4, 5) * 3).to(dtype)
    check_composite("mm", a, b)
    check_composite("addmm", (randn(5) * 3).to(dtype), a, b)


def test_a_bias_times_zero_does_not_count() -> None:
    """beta = 0: even NaN in the bias disappears, as in BLAS."""
    nan = torch.full((3, 5), float("nan"))
    check_composite("addmm", nan, randn(3, 4), randn(4, 5), beta=0, tolerance=CLOSE)


def test_linear_is_one_contraction() -> None:
    nodes = decompose_call("linear", (randn(2, 3, 4), randn(5, 4), randn(5))).nodes
    assert [n.op for n in nodes] == ["contract", "broadcast", "add"]
    assert nodes[0].attr("spec") == "abk,nk->abn"


def test_matmul_does_not_repeat_a_broadcast_operand() -> None:
    (node,) = decompose_call("matmul", (randn(8, 3, 4), randn(4, 5))).nodes
    assert node.attr("spec") == "aik,kj->aij"


def test_half_floats_are_rounded_once() -> None:
    """The sum and the bias are in f32: one cast at the end."""
    half = torch.bfloat16
    nodes = decompose_call(
        "addmm", [randn(5, dtype=half), randn(3, 4, dtype=half), randn(4, 5, dtype=half)]
    ).nodes
    narrow = [n for n in nodes if n.op == "cast" and n.out.type.dtype.bytes == 2]
    assert narrow == [nodes[-1]]


def test_complex_products_stay_extern() -> None:
    z = torch.randn(2, 2, dtype=torch.complex64)
    with pytest.raises(NotNative):
        decompose_call("mm", (z, z))


def convolutions() -> list[tuple[Any, ...]]:
    """(input, weight, stride, padding, dilation, transposed, output_padding, groups)"""
    found: list[tuple[Any, ...]] = []
    for s, p, d, g in itertools.product((1, 2, 3), (0, 1), (1, 2), (1, 2)):
        found.append(((2, 4, 9), (6, 4 // g, 3), [s], [p], [d], False, [0], g))
        for more in range(min(s, 2)):
            found.append(((2, 4, 5), (4, 6 // g, 3), [s], [p], [d], True, [more], g))
    found += [
        ((1, 3, 8, 7), (4, 3, 3, 3), [2, 1], [1, 1], [1, 1], False, [0, 0], 1),
        ((1, 3, 8, 7), (4, 3, 1, 3), [2, 1], [0, 1], [1, 1], False, [0, 0], 1),
        ((2, 6, 5, 5), (6, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 6),
        ((2, 6, 5, 5), (12, 1, 3, 3), [2, 2], [1, 1], [1, 1], False, [0, 0], 6),
        ((2, 6, 5, 5), (6, 1, 1, 1), [2, 2], [0, 0], [1, 1], False, [0, 0], 6),
        ((0, 3, 5, 5), (4, 3, 3, 3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        ((1, 4, 4, 3), (4, 3, 2, 2), [2, 2], [1, 0], [1, 1], True, [1, 0], 1),
        ((1, 4, 4, 3), (4, 3, 2, 3), [2, 3], [0, 0], [1, 1], True, [0, 2], 2),
        ((1, 4, 4, 3), (4, 3, 3, 3), [2, 2], [3, 3], [1, 1], True, [1, 1], 2),
        ((1, 2, 3, 3, 4), (4, 2, 2, 2, 2), [1, 2, 1], [1, 0, 0], [1, 1, 2], False, [0] * 3, 1),
        ((1, 2, 3, 2, 2), (2, 3, 2, 2, 2), [2, 2, 2], [0, 0, 0], [1, 1, 1], True, [0] * 3, 1),
        ((1, 2, 3, 2, 2), (2, 3, 3, 2, 1), [2, 1, 1], [1, 0, 0], [1, 1, 1], True, [1, 0, 0], 1),
    ]  # fmt: skip
    return found


@pytest.mark.parametrize("case", convolutions(), ids=str)
def test_convolution(case: tuple[Any, ...]) -> None:
    x, w, *rest = case
    transposed, groups = rest[3], rest[5]
    outs = w[1] * groups if transposed else w[0]
    check_composite("convolution", randn(*x), randn(*w), randn(outs), *rest, tolerance=CLOSE)


def ops(*args: Any) -> list[str]:
    return [n.op for n in decompose_call("convolution", args).nodes]


def test_a_convolution_is_pad_window_contract() -> None:
    x, w = randn(1, 3, 8, 8), randn(4, 3, 3, 3)
    zero, one = [0, 0], [1, 1]
    assert ops(x, w, None, one, one, one, False, zero, 1) == ["pad", "window", "contract"]
    assert ops(x, randn(4, 3, 1, 1), None, one, zero, one, False, zero, 1)[-1] == "contract"


def test_a_pointwise_convolution_has_no_window() -> None:
    zero, one = [0, 0], [1, 1]
    found = ops(randn(1, 3, 8, 8), randn(4, 3, 1, 1), None, one, zero, one, False, zero, 1)
    assert "window" not in found


def test_tiles_that_do_not_overlap_need_no_stuffing() -> None:
    """stride == window: a matrix product, and no zeros between the elements."""
    zero, one, two = [0, 0], [1, 1], [2, 2]
    found = ops(randn(1, 4, 3, 3), randn(4, 2, 2, 2), None, two, zero, one, True, zero, 1)
    assert found == ["contract", "permute", "reshape"]
