"""Every transform keeps the meaning of a kernel, and refuses where its law does not hold."""

from __future__ import annotations

import pytest

from minicompile.errors import CompileError
from minicompile.ir.loop import If, Kernel
from minicompile.ir.text import text
from minicompile.ir.walk import walk
from minicompile.lower.analysis import carried, find, repeatable
from minicompile.lower.layouts import collapse, stage_window
from minicompile.lower.motion import hoist, reorder, sink
from minicompile.lower.registers import registers, rfactor
from minicompile.lower.transforms import (
    cut,
    distinct,
    drop_unit,
    mark,
    pad_vector,
    shift,
    split,
)
from tests.lower.nests import convolution, kernel, linear, same, softmax, softmax_columns


def elementwise(m: int, n: int, value: str = "exp(x[i, j]) + b[j]") -> Kernel:
    return kernel(f"""
        def k0(x: f32[{m}, {n}], b: f32[{n}], y: f32[{m}, {n}]) -> y:
            for i in serial({m}):
                for j in serial({n}):
                    y[i, j] = {value}
        """)


@pytest.mark.parametrize("at", [0, 1, 16, 19, 20])
def test_cut_gives_a_copy_of_the_loop_for_the_rest(at):
    before = elementwise(3, 20)
    after = same(before, cut(before, "j", at))
    assert ("j_t" in text(after)) == (0 < at < 20)


def test_split_divides():
    before = elementwise(3, 20)
    after = same(before, split(before, "j", 5, "jo", "ji"))
    assert "y[i, jo * 5 + ji]" in text(after)
    with pytest.raises(CompileError, match="does not divide"):
        split(before, "j", 6, "jo", "ji")


@pytest.mark.parametrize("by", [5, 6, 16, 20])
def test_shift_moves_the_last_block_back(by):
    before = elementwise(3, 20)
    same(before, shift(before, "j", by, "jo", "ji"))


def test_shift_refuses_what_may_not_run_twice():
    with pytest.raises(CompileError, match="may not run twice"):
        shift(softmax(2, 20), "j", 16, "jo", "ji")
    with pytest.raises(CompileError, match="fewer than"):
        shift(elementwise(3, 20), "j", 32, "jo", "ji")


def test_reorder():
    before = elementwise(3, 20)
    after = same(before, reorder(before, ["j", "i"]))
    assert text(after).index("for j") < text(after).index("for i")
    with pytest.raises(CompileError, match="not perfectly nested"):
        reorder(linear(3, 4, 5), ["k", "i", "j"])


def test_reorder_refuses_dependences():
    before = kernel("""
        def k0(x: f32[4, 4], y: f32[4, 4]) -> y:
            for i in serial(3):
                for j in serial(3):
                    y[i, j + 1] = x[i, j] + y[i, j]
        """)
    with pytest.raises(CompileError, match="iterations meet in y"):
        reorder(before, ["j", "i"])
    assert carried(find(before, "i")) == ""
    assert carried(find(before, "j")) == "y"
    assert not repeatable(find(before, "j"))


def test_marks_are_checked():
    with pytest.raises(CompileError, match="cannot be vector"):
        mark(linear(3, 4, 5), "k", "vector")
    same(elementwise(3, 16), mark(elementwise(3, 16), "j", "vector"))


def test_pad_vector_masks_the_lanes_beyond():
    before = elementwise(3, 10)
    assert "vector(16, active=10)" in text(same(before, pad_vector(before, "j")))


@pytest.mark.parametrize("tile", [["jr"], ["ir", "jr"]])
def test_registers_make_a_tile(tile):
    before = linear(6, 8, 5)
    k = split(split(before, "i", 3, "io", "ir"), "j", 4, "jo", "jr")
    k = reorder(k, ["io", "jo", "ir", "jr"])
    if len(tile) == 1:
        k = reorder(k, ["io", "ir", "jo", "jr"])
    after = same(before, registers(k, tile))
    assert f"acc: f32[{'3, 4' if len(tile) == 2 else '4'}] @ register" in text(after)


def test_registers_expand_local_buffers_and_names():
    before = softmax_columns(5, 32)
    k = mark(split(before, "i", 16, "io", "iv"), "iv", "vector")
    after = same(before, registers(k, ["iv"]))
    assert "e: f32[5, 16] @ local" in text(after)
    assert "t1: f32[16] @ register" in text(after)


def test_rfactor_sums_in_lanes():
    before = kernel("""
        def k0(x: f32[64], y: f32[1]) -> y:
            s: f32 @ register
            s = 0.0
            for i in serial(64):
                s += x[i]
            y[0] = s
        """)
    k = split(split(before, "i", 32, "io", "ib"), "ib", 16, "iu", "iv")
    after = same(before, rfactor(k, "io", "io", [("iu", "iv")], 2))
    assert "s += fold_add(s_part)" in text(after)


def test_collapse_joins_dimensions():
    before = elementwise(3, 20, "exp(x[i, j])")
    assert "f32[60]" in text(same(before, collapse(before, "i", "j")))
    with pytest.raises(CompileError, match="do not only occur as"):
        collapse(elementwise(3, 20), "i", "j")


def test_sink_and_hoist_are_inverse():
    before = convolution(1, 2, 3, 4, 5, padded=False)
    sunk = same(before, sink(before, "n"))
    assert text(sunk).index("scale") > text(sunk).index("for q")
    row = kernel("""
        def k0(t: f32[8, 4], ids: i64[3], y: f32[3, 4]) -> y:
            for i in serial(3):
                for j in serial(4):
                    at: i64 = ids[i]
                    check(at, 8)
                    y[i, j] = t[at, j]
        """)
    hoisted = same(row, hoist(row, "j"))
    assert text(hoisted).index("check") < text(hoisted).index("for j")


def test_padded_operands_are_copied_with_their_margins():
    before = convolution(2, 3, 4, 5, 6)
    k = sink(before, "n")
    (e,) = {n for n in walk(k.body) if isinstance(n, If)}
    after = same(before, stage_window(k, e, "n", "x_padded"))
    assert "x_padded: f32[3, 7, 8] @ local" in text(after)


def test_distinct_and_drop_unit():
    before = kernel("""
        def k0(x: f32[1, 4], y: f32[1, 4], z: f32[1, 4]) -> (y, z):
            for i in serial(1):
                for j in serial(4):
                    y[i, j] = x[i, j]
            for i in serial(1):
                for j in serial(4):
                    z[i, j] = x[i, j]
        """)
    k = same(before, distinct(before))
    assert "for i_2" in text(k) and "for j_2" in text(k)
    assert "for i" not in text(same(before, drop_unit(k)))
