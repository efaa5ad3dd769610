"""vectorize: the right axis, the right tails, the same results."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicompile.ir.loop import Buffer, KernelCall, Program
from minicompile.ir.text import text
from minicompile.ir.types import TensorType, f32
from minicompile.lower.vectorize import Vectorize, vectorize
from tests.lower.nests import kernel, same, softmax, softmax_columns

WIDTHS = [1, 5, 15, 16, 17, 31, 64, 100, 130]


def vectorized(source: str) -> str:
    before = kernel(source)
    return text(same(before, vectorize(before)))


@pytest.mark.parametrize("n", WIDTHS)
def test_elementwise(n):
    after = vectorized(f"""
        def k0(x: f32[3, {n}], b: f32[{n}], y: f32[3, {n}]) -> y:
            for i in serial(3):
                for j in serial({n}):
                    t: f32 = exp(x[i, j])
                    y[i, j] = t + b[j]
        """)
    assert "vector(16" in after or n == 1


@pytest.mark.parametrize("n", WIDTHS)
def test_row_kernels(n):
    same(softmax(3, n), vectorize(softmax(3, n)))
    same(softmax_columns(4, n), vectorize(softmax_columns(4, n)))


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize(
    "start,combine",
    [("0.0", "s += x[i, j]"), ("1.0", "s *= x[i, j]"), ("-inf", "s = max(s, x[i, j])")],
)
def test_sums_over_rows_and_columns(n, start, combine):
    for order in (("i", "j"), ("j", "i")):
        size = {"i": 6, "j": n}
        kept, summed = order
        vectorized(f"""
            def k0(x: f32[6, {n}], y: f32[{size[kept]}]) -> y:
                for {kept} in serial({size[kept]}):
                    s: f32 @ register
                    s = {start}
                    for {summed} in serial({size[summed]}):
                        {combine}
                    y[{kept}] = s
            """)


@pytest.mark.parametrize("n", [5, 20, 100])
def test_sums_of_everything_flags_and_indices(n):
    vectorized(f"""
        def k0(x: f32[6, {n}], y: f32) -> y:
            s: f32 @ register
            s = 0.0
            for i in serial(6):
                for j in serial({n}):
                    s += x[i, j]
            y[()] = s
        """)
    vectorized(f"""
        def k0(x: f32[6, {n}], y: i64[6], z: bool[6]) -> (y, z):
            for i in serial(6):
                top: f32 @ register
                at: i64 @ register
                any: bool @ register
                top = -inf
                for j in serial({n}):
                    top = max(top, x[i, j])
                at = 9223372036854775807
                any = False
                for j_2 in serial({n}):
                    at = min(at, where(x[i, j_2] == top, index(j_2), {n}))
                    any |= x[i, j_2] > 1.0
                y[i] = at
                z[i] = any
        """)


def test_columns_are_summed_row_by_row():
    after = vectorized("""
        def k0(x: f32[50, 128], y: f32[128]) -> y:
            for j in serial(128):
                s: f32 @ register
                s = 0.0
                for i in serial(50):
                    s += x[i, j]
                y[j] = s * 0.02
        """)
    assert "s[ju, jv] += x[i, jo * 64 + ju * 16 + jv]" in after


@pytest.mark.parametrize("n", [7, 40])
def test_scans_run_along_the_other_axis(n):
    for load in ("k, i", "i, k"):
        shape = f"9, {n}" if load == "k, i" else f"{n}, 9"
        vectorized(f"""
            def k0(x: f32[{shape}], y: f32[{shape}]) -> y:
                for i in serial({n}):
                    s: f32 @ register
                    s = 0.0
                    for k in serial(9):
                        s += x[{load}]
                        y[{load}] = s
            """)


def test_dependences_stay_serial():
    after = vectorized("""
        def k0(x: f32[40], y: f32[41]) -> y:
            y[0] = 1.0
            for i in serial(40):
                y[i + 1] = x[i] * y[i]
        """)
    assert "vector" not in after


def test_gathers_check_once_per_row():
    after = vectorized("""
        def k0(t: f32[8, 40], ids: i64[3], y: f32[3, 40]) -> y:
            for i in serial(3):
                for j in serial(40):
                    at: i64 = ids[i]
                    check(at, 8)
                    y[i, j] = t[at, j]
        """)
    assert after.index("check") < after.index("vector")


def test_scatters_keep_their_order():
    vectorized("""
        def k0(x: f32[8, 40], s: f32[6, 40], ids: i64[6], y: f32[8, 40]) -> y:
            for i in serial(8):
                for j in serial(40):
                    y[i, j] = x[i, j]
            for k in serial(6):
                for j_2 in serial(40):
                    at: i64 = ids[k]
                    check(at, 8)
                    y[at, j_2] += s[k, j_2]
        """)
    after = vectorized("""
        def k0(s: f32[40], ids: i64[40], y: f32[8]) -> y:
            for i in serial(8):
                y[i] = 0.0
            for k in serial(40):
                at: i64 = ids[k]
                check(at, 8)
                y[at] += s[k]
        """)
    assert "for k in serial(40)" in after


@pytest.mark.parametrize("n", [7, 16, 33])
def test_conditions(n):
    vectorized(f"""
        def k0(x: f32[4, {n}], y: f32[6, {n + 2}]) -> y:
            for i in serial(6):
                for j in serial({n + 2}):
                    y[i, j] = x[i - 1, j - 1] if 0 <= i - 1 < 4 and 0 <= j - 1 < {n} else 0.0
        """)


@pytest.mark.parametrize("m,n", [(5, 7), (16, 16), (64, 33), (100, 40)])
def test_transposing_copies_go_by_blocks(m, n):
    after = vectorized(f"""
        def k0(x: f32[{m}, {n}], y: f32[{n}, {m}]) -> y:
            for i in serial({n}):
                for j in serial({m}):
                    y[i, j] = x[j, i]
        """)
    assert ("x_block" in after) == (m >= 16 and n >= 16)


def test_short_loops_are_joined():
    after = vectorized("""
        def k0(x: f32[2, 3, 5, 7], b: f32[3], y: f32[2, 3, 5, 7]) -> y:
            for n in serial(2):
                for c in serial(3):
                    for i in serial(5):
                        for j in serial(7):
                            y[n, c, i, j] = x[n, c, i, j] * b[c]
        """)
    assert "y: f32[2, 3, 35]" in after


def test_calls_see_joined_buffers_by_aliases():
    k = kernel("""
        def k0(x: f32[5, 7], y: f32[5, 7]) -> y:
            for i in serial(5):
                for j in serial(7):
                    y[i, j] = exp(x[i, j])
        """)
    type = TensorType(f32, (5, 7))
    buffers = (Buffer("a", type, "input"), Buffer("b", type, "output"))
    program = Program("p", (k,), buffers, (KernelCall("k0", ("a", "b")),), None)
    after = Vectorize().run(program)
    assert after.calls == (KernelCall("k0", ("a_1d", "b_1d")),)
    assert after.buffer("b_1d") == Buffer("b_1d", TensorType(f32, (35,)), "alias", "b")


@settings(max_examples=40)
@given(m=st.integers(1, 20), n=st.integers(1, 70), steps=st.sampled_from(["x[i, j]", "x[j, i]"]))
def test_any_sizes(m, n, steps):
    shape = f"{m}, {n}" if steps == "x[i, j]" else f"{n}, {m}"
    vectorized(f"""
        def k0(x: f32[{shape}], b: f32[{m}], y: f32[{m}, {n}], z: f32[{m}]) -> (y, z):
            for i in serial({m}):
                s: f32 @ register
                s = 0.0
                for j in serial({n}):
                    t: f32 = {steps} * b[i]
                    y[i, j] = t
                    s += t
                z[i] = s
        """)
