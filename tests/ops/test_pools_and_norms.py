"""Pooling, normalisation, attention, resizing and recurrent cells over many shapes and corner cases."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from minicompile.errors import NotNative
from minicompile.ops.registry import PRIMITIVES, Kind
from tests.ops.harness import check_composite, decompose_call

INF, NAN = float("inf"), float("nan")
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    g = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


# ---------------------------------------------------------------------------------- pooling

WINDOWS = list(itertools.product((2, 3), (1, 2, 3), (0, 1), (False, True)))


@pytest.mark.parametrize(("k", "s", "p", "ceil"), WINDOWS)
def test_max_pool(k: int, s: int, p: int, ceil: bool) -> None:
    for size in (5, 6, 7):
        args = ([k, k], [s, s], [p, p], [1, 1], ceil)
        check_composite("max_pool2d_with_indices", randn(2, 2, size, size + 1), *args)


@pytest.mark.parametrize(("k", "s", "p", "ceil"), WINDOWS)
@pytest.mark.parametrize("include", [True, False])
def test_avg_pool(k: int, s: int, p: int, ceil: bool, include: bool) -> None:
    for size in (5, 6, 7):
        args = ([k, k], [s, s], [p, p], ceil, include)
        check_composite("avg_pool2d", randn(2, 2, size, size + 1), *args, tolerance=CLOSE)


def test_max_pool_prefers_the_first_maximum_and_the_last_nan() -> None:
    for row in ([1, 3, 3, 1], [NAN, 3, NAN, 1], [-INF] * 4, [-INF, NAN, -INF, INF]):
        x = torch.tensor(row).reshape(1, 1, 2, 2)
        check_composite("max_pool2d_with_indices", x, [2, 2])
        check_composite("max_pool2d_with_indices", x, [2, 2], [1, 1], [1, 1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int64])
def test_max_pool_of_other_dtypes(dtype: torch.dtype) -> None:
    check_composite(
        "max_pool2d_with_indices", (randn(1, 2, 6, 6) * 5).to(dtype), [3, 3], [2, 2], [1, 1]
    )


@pytest.mark.parametrize("sizes", [(1, 1), (3, 2), (2, 5), (6, 7), (9, 8), (1, 7), (0, 2)])
def test_adaptive_pools(sizes: tuple[int, int]) -> None:
    x = randn(2, 3, 6, 7)
    check_composite("_adaptive_avg_pool2d", x, list(sizes), tolerance=CLOSE)
    check_composite("adaptive_max_pool2d", x, list(sizes))


def test_regular_bins_are_windows() -> None:
    kinds = [
        PRIMITIVES[n.op].kind
        for n in decompose_call("_adaptive_avg_pool2d", (randn(1, 2, 6, 8), [3, 4])).nodes
    ]
    assert Kind.GATHER not in kinds


# ---------------------------------------------------------------------------------- norms


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_norms(dtype: torch.dtype) -> None:
    x, w, b = randn(4, 6, 5, dtype=dtype), randn(6, dtype=dtype), randn(6, dtype=dtype)
    loose = {"rtol": 2e-2, "atol": 2e-2} if dtype.itemsize == 2 else CLOSE
    check_composite("native_layer_norm", x, [6, 5], None, None, 1e-5, tolerance=loose)
    check_composite("native_layer_norm", x, [5], randn(5, dtype=dtype), None, 1e-5, tolerance=loose)
    check_composite("native_group_norm", x, w, b, 4, 6, 5, 3, 1e-5, tolerance=loose)
    check_composite("_fused_rms_norm", x, [5], randn(5, dtype=dtype), None, tolerance=loose)
    args = (x, w, b, randn(6, dtype=dtype), randn(6, dtype=dtype).abs() + 0.5)
    check_composite("native_batch_norm", *args, False, 0.1, 1e-5, tolerance=loose)
    check_composite("_native_batch_norm_legit_functional", *args, True, 0.1, 1e-5, tolerance=loose)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_half_floats_with_f32_parameters(half: torch.dtype) -> None:
    x, w, loose = randn(4, 6, 5, dtype=half), randn(6), {"rtol": 2e-2, "atol": 2e-2}
    args = (x, w, w, w, w.abs() + 0.5)
    check_composite("native_batch_norm", *args, False, 0.1, 1e-5, tolerance=loose)
    check_composite("native_layer_norm", randn(3, 6, dtype=half), [6], w, w, 1e-5, tolerance=loose)


def test_variances_are_about_the_mean() -> None:
    """A large common offset: the one-pass formula would lose all digits."""
    x = randn(4, 64) + 3000.0
    exact = torch.ops.aten.native_layer_norm(x.double(), [64], None, None, 1e-5)[0]
    (y, _, _) = decomposed("native_layer_norm", x, [64], None, None, 1e-5)
    assert (y - exact).abs().max() < 2e-3


def decomposed(op: str, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
    from tests.ops.harness import execute

    return execute(decompose_call(op, args, kwargs))


def test_updates_in_place_stay_extern() -> None:
    w = randn(3)
    with pytest.raises(NotNative):
        decompose_call("native_batch_norm", (randn(4, 3), w, w, w, w, True, 0.1, 1e-5))


# ---------------------------------------------------------------------------------- attention

SDPA = "scaled_dot_product_attention"


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("i", "j"), [(5, 5), (1, 7), (7, 3)])
def test_attention(i: int, j: int, causal: bool) -> None:
    q, k, v = randn(2, 3, i, 4), randn(2, 3, j, 4), randn(2, 3, j, 6)
    check_composite(SDPA, q, k, v, None, 0.0, causal, tolerance=CLOSE)


@pytest.mark.parametrize(
    "shape", [(5, 7), (1, 7), (2, 1, 5, 7), (1, 3, 5, 7), (2, 3, 5, 1), (2, 1, 1, 7)]
)
@pytest.mark.parametrize("bools", [False, True])
def test_attention_masks(shape: tuple[int, ...], bools: bool) -> None:
    q, k, v = randn(2, 3, 5, 4), randn(2, 3, 7, 4), randn(2, 3, 7, 4)
    mask = randn(*shape)
    check_composite(SDPA, q, k, v, mask > 0 if bools else mask, tolerance=CLOSE)


def test_rows_masked_everywhere_give_zero() -> None:
    q, mask = randn(1, 2, 3, 4), torch.zeros(3, 3, dtype=torch.bool)
    mask[0, :2] = True
    check_composite(SDPA, q, q, q, mask, tolerance=CLOSE)
    added = torch.zeros(3, 3).masked_fill(~mask, -INF)
    check_composite(
        "_scaled_dot_product_flash_attention_for_cpu", q, q, q, attn_mask=added, tolerance=CLOSE
    )


@pytest.mark.parametrize("mask", [None, (5, 7), (2, 6, 5, 7), (2, 1, 5, 7)])
def test_grouped_attention_repeats_nothing(mask: tuple[int, ...] | None) -> None:
    q, k, v = randn(2, 6, 5, 4), randn(2, 2, 7, 4), randn(2, 2, 7, 4)
    m = None if mask is None else randn(*mask) > 0
    call = check_composite(SDPA, q, k, v, m, enable_gqa=True, tolerance=CLOSE)
    first = next(n for n in call.nodes if n.op == "contract")
    assert first.operands[1].type.dims == (2, 2, 7, 4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_attention_in_other_dtypes(dtype: torch.dtype) -> None:
    q, k, v = (randn(1, 2, n, 8, dtype=dtype) for n in (5, 7, 7))
    check_composite(SDPA, q, k, v, tolerance={"rtol": 2e-2, "atol": 1e-2})


def test_dropout_stays_extern() -> None:
    q = randn(1, 2, 3, 4)
    with pytest.raises(NotNative):
        decompose_call(SDPA, (q, q, q, None, 0.5))


# ---------------------------------------------------------------------------------- resizing


@pytest.mark.parametrize("exact", ["upsample_nearest2d", "_upsample_nearest_exact2d"])
@pytest.mark.parametrize("size", [(4, 5), (8, 10), (2, 1), (7, 13), (1, 1), (12, 3)])
def test_nearest(exact: str, size: tuple[int, int]) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.uint8):
        check_composite(exact, (randn(2, 3, 4, 5) * 9).to(dtype), list(size))
    check_composite(exact, randn(2, 3, 4, 5), list(size), 1.7, 2.3)


@pytest.mark.parametrize("op", ["upsample_bilinear2d", "upsample_bicubic2d"])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("size", [(4, 5), (8, 10), (2, 1), (7, 13), (1, 1)])
def test_interpolation(op: str, aligned: bool, size: tuple[int, int]) -> None:
    for dtype in (torch.float32, torch.float64):
        check_composite(op, randn(2, 3, 4, 5, dtype=dtype), list(size), aligned, tolerance=CLOSE)
    for scales in ((1.7, 2.3), (None, 1.5)):
        check_composite(op, randn(2, 3, 4, 5), list(size), aligned, *scales, tolerance=CLOSE)


def test_equal_sizes_with_a_scale() -> None:
    """Whether equal sizes override the scale differs from kernel to kernel; follow each."""
    row = randn(2, 3, 6)
    for op in ("upsample_nearest1d", "_upsample_nearest_exact1d"):
        check_composite(op, row, [6], 1.7)
        check_composite(op, row, [12], 1.7)
    check_composite("upsample_linear1d", row, [6], False, 1.7)
    check_composite(
        "upsample_bilinear2d", randn(1, 2, 4, 5), [4, 7], False, 1.7, 2.3, tolerance=CLOSE
    )
    check_composite("upsample_nearest3d", randn(1, 2, 3, 2, 2), [3, 4, 5], 1.5, 1.5, 1.5)


def test_scale_factors_by_name() -> None:
    check_composite("upsample_nearest2d", randn(1, 1, 4, 4), [6, 6], scales_h=1.5, scales_w=1.6)
    check_composite(
        "upsample_bilinear2d", randn(1, 1, 4, 4), [6, 6], False, scales_w=1.6, tolerance=CLOSE
    )
    check_composite("upsample_nearest2d.vec", randn(1, 1, 4, 4), None, [1.5, 2.0])


def test_whole_ratios_are_layouts() -> None:
    """Doubling and halving by nearest only changes indices."""
    for size in ([8, 8], [2, 2], [4, 8]):
        nodes = decompose_call("upsample_nearest2d", (randn(1, 2, 4, 4), size)).nodes
        assert all(PRIMITIVES[n.op].kind is Kind.LAYOUT for n in nodes)


def test_integers_are_interpolated_by_pytorch() -> None:
    with pytest.raises(NotNative):
        decompose_call(
            "upsample_bilinear2d", (torch.zeros(1, 1, 4, 4, dtype=torch.uint8), [8, 8], False)
        )
