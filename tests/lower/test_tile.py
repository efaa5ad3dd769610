"""Register tiles: every schedule of every contraction computes the same, for sizes that do not divide."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicompile.ir.loop import Kernel, Program
from minicompile.ir.text import text
from minicompile.lower.contraction import choices, recognize
from minicompile.lower.machine import machine
from minicompile.lower.motion import sink
from minicompile.lower.tile import SCHEDULES, Tile, tile
from minicompile.lower.tile_conv import block_of_rows, forms
from minicompile.lower.vectorize import vectorize
from tests.lower.nests import convolution, kernel, linear, same, softmax

SIZES = [(1, 5, 50), (3, 37, 19), (8, 16, 16), (16, 10, 33), (20, 37, 19), (33, 64, 40)]


def tiled(k: Kernel) -> Kernel:
    after, made = tile(k)
    assert made, "not recognised as a contraction"
    same(k, after)
    return same(k, vectorize(after))


@pytest.mark.parametrize("m,n,k", SIZES)
@pytest.mark.parametrize("transposed", [True, False])
def test_linear(m, n, k, transposed):
    tiled(linear(m, n, k, transposed))


def test_every_choice_is_right():
    k = linear(19, 34, 21)
    c = recognize(k, "i")
    assert c is not None
    seen = set()
    for choice in choices(c):
        kind = (choice.how, choice.vector, choice.row, choice.nv)
        if kind not in seen:
            seen.add(kind)
            same(k, SCHEDULES[choice.how](k, c, choice))
    assert len(seen) > 8


def test_few_rows_take_lanes_along_the_sum():
    (choice,) = tile(linear(1, 512, 784))[1]
    assert choice.how == "dot" and not choice.pack
    (choice,) = tile(linear(512, 512, 512))[1]
    assert choice.how == "rows" and [x.buf for x in choice.pack] == ["w"]
    (choice,) = tile(linear(512, 512, 512, transposed=False))[1]
    assert choice.how == "rows" and not choice.pack


def test_heavy_epilogues_are_rolled():
    after = tiled(linear(20, 37, 19, epilogue="tanh(t0 + b[j])"))
    assert text(after).count("tanh") == 1
    assert "acc_tile" in text(after) and "@ local" in text(after)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("b,c,o,h,w", [(2, 3, 5, 7, 18), (2, 3, 34, 6, 9), (1, 1, 4, 5, 33)])
def test_convolution(b, c, o, h, w, step, padded):
    tiled(convolution(b, c, o, h, w, step, padded))


def test_lanes_along_channels_copy_padding_and_scale_once():
    k = sink(convolution(2, 8, 32, 6, 9), "n")
    c = recognize(k, "n")
    assert c is not None
    choice = next(x for x in choices(c) if x.how == "rows" and x.vector == "o")
    after = text(same(k, SCHEDULES["rows"](k, c, choice)))
    assert "x_padded" in after and "scale_panel" in after and "w_panel" in after


def test_forms_of_a_convolution():
    k = sink(convolution(2, 3, 4, 6, 9), "n")
    as_it_is, unfolded = forms(k, "n")
    assert as_it_is.kernel == k
    assert "x_columns: f32[3, 3, 3, 54] @ local" in text(same(k, unfolded.kernel))
    pointwise = kernel("""
        def k0(x: f32[3, 6, 7], w: f32[4, 3], y: f32[4, 6, 7]) -> y:
            for o in serial(4):
                for h in serial(6):
                    for q in serial(7):
                        acc: f32 @ register
                        acc = 0.0
                        for c in serial(3):
                            acc += x[c, h, q] * w[o, c]
                        y[o, h, q] = acc
        """)
    _, joined = forms(pointwise, "o")
    assert "x: f32[3, 42]" in text(same(pointwise, joined.kernel))


@pytest.mark.parametrize("height,width,depth", [(28, 28, 576), (7, 7, 4608), (11, 11, 288)])
def test_blocks_of_rows_fit_the_cache(height, width, depth):
    rows = block_of_rows(depth, height, width)
    assert 0 <= rows <= height
    assert 4 * depth * rows * width <= machine().l2 // 2
    assert block_of_rows(10**9, height, width) == 0


def test_depthwise_and_batched_products():
    tiled(
        kernel("""
        def k0(x: f32[5, 9, 20], w: f32[5, 3, 3], y: f32[5, 7, 18]) -> y:
            for c in serial(5):
                for h in serial(7):
                    for q in serial(18):
                        acc: f32 @ register
                        acc = 0.0
                        for p in serial(3):
                            for r in serial(3):
                                acc += x[c, h + p, q + r] * w[c, p, r]
                        y[c, h, q] = acc
        """)
    )
    tiled(
        kernel("""
        def k0(q: f32[9, 3, 24], k: f32[17, 3, 24], y: f32[3, 9, 17]) -> y:
            for h in serial(3):
                for i in serial(9):
                    for j in serial(17):
                        acc: f32 @ register
                        acc = 0.0
                        for d in serial(24):
                            acc += q[i, h, d] * k[j, h, d]
                        keep: bool = index(j) <= index(i)
                        y[h, i, j] = where(keep, acc * 0.25, -inf)
        """)
    )


def test_other_products_and_dtypes():
    tiled(
        kernel("""
        def k0(x: f64[20, 19], w: f64[37, 19], y: f64[20, 37]) -> y:
            for i in serial(20):
                for j in serial(37):
                    acc: f64 @ register
                    acc = inf
                    for k in serial(19):
                        acc = min(acc, abs(x[i, k] - w[j, k]))
                    y[i, j] = acc
        """)
    )
    tiled(
        kernel("""
        def k0(x: i64[6, 9], w: i64[9, 17], y: i64[6, 17]) -> y:
            for i in serial(6):
                for j in serial(17):
                    acc: i64 @ register
                    acc = 0
                    for k in serial(9):
                        acc += x[i, k] * w[k, j]
                    y[i, j] = acc
        """)
    )


def test_other_nests_stay_as_they_are():
    k = softmax(5, 20)
    assert tile(k) == (k, [])
    assert recognize(sink(k, "i"), "i") is None


@settings(max_examples=25)
@given(
    m=st.integers(1, 40), n=st.integers(1, 70), k=st.integers(1, 40), transposed=st.booleans(),
    epilogue=st.sampled_from(["t0", "t0 + b[j]", "exp(t0 * 0.1)", "maximum(t0, 0.0) * b[j]"]),
)  # fmt: skip
def test_any_sizes(m, n, k, transposed, epilogue):
    before = linear(m, n, k, transposed, epilogue)
    after, _ = tile(before)
    same(before, vectorize(after))


def test_the_pass_maps_over_kernels():
    k = linear(20, 37, 19)
    program = Program("p", (k,), (), (), None)
    assert Tile().run(program).kernels == (tile(k)[0],)


@pytest.mark.parametrize("m,n,k", [(1, 30, 50), (3, 37, 64), (4, 5, 33)])
def test_heavy_epilogues_of_few_rows_are_rolled(m, n, k):
    before = linear(m, n, k, epilogue="tanh(t0 + b[j])")
    c = recognize(before, "i")
    assert c is not None
    choice = next(x for x in choices(c) if x.how == "dot")
    after = same(before, SCHEDULES["dot"](before, c, choice))
    assert text(vectorize(after)).count("tanh") == 1
    same(before, vectorize(after))
