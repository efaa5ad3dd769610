"""merge: neighbouring nests become one, buffers shrink, invariants move out."""

from __future__ import annotations

from minicompile.ir.loop import Kernel
from minicompile.ir.text import parse, text
from minicompile.lower.merge import merge_kernel
from tests.lower.graphs import LINEAR, SOFTMAX, kernel_text, lowered


def merged(source: str) -> str:
    """The kernel of this text after merging, without comments."""
    kernel = parse(source.strip() + "\n")
    assert isinstance(kernel, Kernel)
    return "\n".join(r.split("#")[0].rstrip() for r in text(merge_kernel(kernel)).splitlines())


def test_the_epilogue_joins_its_contraction() -> None:
    assert kernel_text(lowered(LINEAR)) == (
        "def k0(x: f32[4, 8], w: f32[6, 8], b: f32[6], t3: f32[4, 6]) -> t3:\n"
        "    for i0 in serial(4):\n"
        "        for i1 in serial(6):\n"
        "            t0_acc: f32 @ register\n"
        "            t0_acc = 0.0\n"
        "            for r0 in serial(8):\n"
        "                t0_product: f32 = x[i0, r0] * w[i1, r0]\n"
        "                t0_acc += t0_product\n"
        "            t0: f32 = t0_acc\n"
        "            t2: f32 = t0 + b[i1]\n"
        "            t3[i0, i1] = maximum(t2, 0.0)"
    )


def test_softmax_keeps_one_row() -> None:
    rows = kernel_text(lowered(SOFTMAX))
    assert rows.count("for i0") == 1
    assert "t3: f32[8] @ local" in rows  # the exponentials of one row
    assert "t0: f32 = t0_acc" in rows  # the maximum became a scalar


def test_a_shifted_read_keeps_nests_apart() -> None:
    source = """
def k(x: f32[8], t: f32[8], y: f32[8]) -> (t, y):
    for i in serial(8):
        t[i] = x[i] * 2.0
    for j in serial(8):
        y[j] = t[7 - j]
"""
    assert merged(source).count("for ") == 2


def test_a_reduced_scalar_keeps_nests_apart() -> None:
    source = """
def k(x: f32[8], y: f32[8]) -> y:
    acc: f32 @ register
    acc = 0.0
    for i in serial(8):
        acc += x[i]
    for j in serial(8):
        y[j] = x[j] - acc
"""
    assert merged(source).count("for ") == 2


def test_loops_are_reordered_to_meet() -> None:
    source = """
def k(x: f32[4, 8], t: f32[8], y: f32[4, 8]) -> (t, y):
    for i in serial(8):
        t[i] = x[0, i]
    for j in serial(4):
        for m in serial(8):
            y[j, m] = x[j, m] - t[m]
"""
    assert merged(source).splitlines()[1:] == [
        "    for i in serial(8):",
        "        t[i] = x[0, i]",
        "        for j in serial(4):",
        "            y[j, i] = x[j, i] - t[i]",
    ]


def test_scattered_stores_are_never_merged() -> None:
    source = """
def k(x: f32[8], ids: i64[8], t: f32[8], y: f32[8]) -> (t, y):
    for i in serial(8):
        at: i64 = ids[i]
        check(at, 8)
        t[at] = x[i]
    for j in serial(8):
        y[j] = t[j]
"""
    assert merged(source).count("for ") == 2


def test_invariants_move_out_and_repeats_go() -> None:
    source = """
def k(x: f32[4, 8], y: f32[4, 8]) -> y:
    for i in serial(4):
        for j in serial(8):
            a: f32 = x[i, 0]
            b: f32 = a * 2.0
            c: f32 = a * 2.0
            y[i, j] = b + c
"""
    assert merged(source).splitlines()[1:] == [
        "    for i in serial(4):",
        "        a: f32 = x[i, 0]",
        "        b: f32 = a * 2.0",
        "        for j in serial(8):",
        "            y[i, j] = b + b",
    ]


def test_repeats_in_indices_are_renamed() -> None:
    source = """
def k(x: f32[8, 8], y: f32[8]) -> y:
    for i in serial(8):
        a: i64 = index(i) * 3
        check(a, 8)
        b: i64 = index(i) * 3
        check(b, 8)
        y[i] = x[a, b]
"""
    rows = merged(source)
    assert "y[i] = x[a, a]" in rows and "check(b" not in rows


def test_zeros_of_both_signs_are_no_repeats() -> None:
    source = """
def k(x: f32[8], y: f32[8]) -> y:
    for i in serial(8):
        a: f32 = copysign(f32(1.0), f32(0.0))
        b: f32 = copysign(f32(1.0), f32(-0.0))
        y[i] = x[i] + (a - b)
"""
    assert "a - b" in merged(source)


def test_layer_norm_is_one_nest() -> None:
    program = lowered(
        """
def f(x: f32[4, 8]) -> f32[4, 8]:
    with k0:
        t0: f32[4] = reduce_sum(x, dims=(1,))
        t1: f32[4] = mul(t0, 0.125)
        t2: f32[4, 8] = broadcast(t1, shape=(4, 8), dims=(0,))
        t3: f32[4, 8] = sub(x, t2)
        t4: f32[4, 8] = mul(t3, t3)
        t5: f32[4] = reduce_sum(t4, dims=(1,))
        t6: f32[4] = add(t5, 1e-05)
        t7: f32[4] = rsqrt(t6)
        t8: f32[4, 8] = broadcast(t7, shape=(4, 8), dims=(0,))
        t9: f32[4, 8] = mul(t3, t8)
    return t9
"""
    )
    rows = kernel_text(program)
    assert rows.count("for i0") == 1 and "@ arena" not in rows and "@ local" not in rows
