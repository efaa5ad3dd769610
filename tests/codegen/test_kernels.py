"""Kernels of every form: the generated code against the interpreter."""

from __future__ import annotations

import pytest
import torch

from tests.codegen.harness import check, kernel_of, run, source_of

ROW = torch.arange(16.0)


def test_naive_nest() -> None:
    check(
        """\
def k0(x: f32[5, 7], w: f32[7, 3], b: f32[3], y: f32[5, 3]) -> y:
    for i in parallel(5):
        for j in serial(3):
            acc: f32 @ register
            acc = 0.0
            for k in serial(7):
                acc += x[i, k] * w[k, j]
            t0: f32 = acc
            y[i, j] = maximum(t0 + b[j], 0.0)
""",
        torch.randn(5, 7),
        torch.randn(7, 3),
        torch.randn(3),
    )


def test_register_tile() -> None:
    check(
        """\
def k0(x: f32[14, 9], w: f32[2, 9, 2, 16], b: f32[64], y: f32[14, 64]) -> y:
    for j0 in serial(2):
        for i0 in serial(3, step=6, last=8):
            acc: f32[6, 2, 16] @ register
            for i1 in unroll(6):
                for j1 in unroll(2):
                    for j2 in vector(16):
                        acc[i1, j1, j2] = 0.0
            for k in serial(9):
                for i1 in unroll(6):
                    for j1 in unroll(2):
                        for j2 in vector(16):
                            acc[i1, j1, j2] += x[i0 + i1, k] * w[j0, k, j1, j2]
            for i1 in unroll(6):
                for j1 in unroll(2):
                    for j2 in vector(16):
                        t0: f32 = acc[i1, j1, j2]
                        y[i0 + i1, j0 * 32 + j1 * 16 + j2] = t0 + b[j0 * 32 + j1 * 16 + j2]
""",
        torch.randn(14, 9),
        torch.randn(2, 9, 2, 16),
        torch.randn(64),
    )


def test_vector_loop_steps() -> None:
    """Contiguous, broadcast, strided, reversed and gathered loads; contiguous and strided stores."""
    check(
        """\
def k0(x: f32[40, 16], s: f32[3], ids: i64[16], y: f32[16], z: f32[16, 3]) -> (y, z):
    for v in vector(16):
        j: i64 = ids[v]
        y[v] = x[0, v] + s[1] * x[v, 2] - x[3, 15 - v] + x[j, v // 3]
        z[v, 1] = x[1, v] * 2.0
        z[v, 0] = 1.0
        z[15 - v, 2] = x[1, v]
""",
        torch.randn(40, 16),
        torch.randn(3),
        torch.randint(0, 40, (16,)),
    )


def test_active_lanes_leave_neighbours_alone() -> None:
    got = check(
        """\
def k0(x: f32[26], y: f32[26], z: f32[26, 2], s: f32) -> (y, z, s):
    for i in serial(26):
        y[i] = -1.0
        z[i, 0] = -1.0
        z[i, 1] = -2.0
    s[()] = 0.0
    for v in vector(16, active=10):
        y[v + 3] = x[v + 16] + 1.0
        z[v, 1] = x[v + 16]
        s[()] += x[v + 16]
""",
        torch.randn(26),
    )
    assert (got["y"][13:] == -1).all() and (got["y"][:3] == -1).all()


def test_sum_over_lanes() -> None:
    check(
        """\
def k0(x: f32[4, 90], y: f32[4], m: f32[4]) -> (y, m):
    for i in serial(4):
        s: f32[2, 16] @ register
        t: f32[16] @ register
        for u in unroll(2):
            for v in vector(16):
                s[u, v] = 0.0
        for v in vector(16):
            t[v] = -inf
        for k in serial(2):
            for u in unroll(2):
                for v in vector(16):
                    s[u, v] += x[i, k * 32 + u * 16 + v]
                    t[v] = max(t[v], x[i, k * 32 + u * 16 + v])
        for k in serial(1):
            for v in vector(16, active=10):
                t[v] = max(t[v], x[i, 80 + v])
        y[i] = fold_add(s)
        m[i] = fold_max(t)
""",
        torch.randn(4, 90),
    )


def test_padding_reads_nothing_outside() -> None:
    """Conditions on serial variables, on the lanes, and both; concatenation has an open last arm."""
    check(
        """\
def k0(x: f32[5, 10], w: f32[6], y: f32[7, 16], z: f32[16]) -> (y, z):
    for i in serial(7):
        for v in vector(16):
            y[i, v] = x[i - 1, v - 2] if 0 <= i - 1 < 5 and 0 <= v - 2 < 10 else -1.0
    for v in vector(16):
        z[v] = x[1, v] if 0 <= v < 10 else w[v - 10]
""",
        torch.randn(5, 10),
        torch.randn(6),
    )


def test_scalar_conditions() -> None:
    check(
        """\
def k0(x: f32[5], h: f16[3], y: f32[8], z: f16[8]) -> (y, z):
    for i in serial(8):
        y[i] = x[i - 2] * 2.0 if 0 <= i - 2 < 5 else 1.0
        z[i] = h[i] if 0 <= i < 3 else 0.0
""",
        torch.randn(5),
        torch.randn(3).half(),
    )


LOOKUP = """\
def k0(ids: i64[4], x: f32[6, 20], y: f32[4, 20]) -> y:
    for i in serial(4):
        j: i64 = ids[i]
        check(j, 6)  # m.py:7
        for c in serial(20):
            y[i, c] = x[j, c]
"""


def test_checked_gather() -> None:
    x = torch.randn(6, 20)
    check(LOOKUP, torch.tensor([5, 0, 3, 3]), x)
    for bad in (6, -1, 2**40):
        with pytest.raises(IndexError, match="axis of size 6"):
            run(kernel_of(LOOKUP), {"ids": torch.tensor([5, 0, bad, 3]), "x": x})


def test_scatter_adds_equal_indices() -> None:
    check(
        """\
def k0(ids: i64[40], src: f32[40], x: f32[9], y: f32[9], z: f32[9]) -> (y, z):
    for i in serial(9):
        y[i] = x[i]
        z[i] = x[i]
    for i in serial(40):
        j: i64 = ids[i]
        check(j, 9)
        y[j] += src[i]
    for v in vector(16, active=13):
        jv: i64 = ids[v]
        check(jv, 9)
        z[jv] += src[v]
""",
        torch.randint(0, 9, (40,)),
        torch.randn(40),
        torch.randn(9),
    )


def test_scan_and_local_row() -> None:
    check(
        """\
def k0(x: f32[3, 50], y: f32[3, 50], z: f32[3, 50]) -> (y, z):
    for i in parallel(3):
        e: f32[50] @ local
        acc: f32 @ register
        acc = 0.0
        for k in serial(50):
            acc += x[i, k]
            y[i, k] = acc
            e[k] = exp(x[i, k])
        for k in serial(50):
            z[i, k] = e[49 - k]
""",
        torch.randn(3, 50),
    )


def test_big_local_buffer() -> None:
    check(
        """\
def k0(x: f32[70000], y: f32[70000]) -> y:
    e: f32[70000] @ local
    for k in serial(70000):
        e[k] = x[k] * 2.0
    for k in serial(70000):
        y[k] = e[69999 - k]
""",
        torch.randn(70000),
    )


def test_private_memory_of_a_vector_loop() -> None:
    check(
        """\
def k0(x: f32[16, 5], y: f32[16, 5]) -> y:
    for v in vector(16):
        e: f32[5] @ local
        acc: f32 @ register
        acc = 0.0
        for k in serial(5):
            acc += x[v, k]
            e[k] = acc
        for k in serial(5):
            y[v, k] = e[4 - k] / acc
""",
        torch.rand(16, 5),
    )


def test_in_place_update_is_read_again() -> None:
    """A load that has a name must not survive a store to the same buffer."""
    check(
        """\
def k0(x: f32[4], y: f32[4]) -> y:
    for i in serial(4):
        y[i] = x[i]
    for i in serial(3):
        y[i + 1] = y[i] + y[i] * 2.0
        a: f32 = y[i + 1] + y[i]
        y[i] = a + y[i + 1]
""",
        torch.randn(4),
    )


def test_strided_parameters() -> None:
    x = torch.randn(6, 4).t()
    check(
        """\
def k0(x: f32[4, 6] @ strides(1, 4), y: f32[4, 6] @ strides(1, 4)) -> y:
    for i in serial(4):
        for j in serial(6):
            y[i, j] = x[i, j] + 1.0
""",
        x,
    )


def test_empty_loops() -> None:
    check(
        "def k0(x: f32[0], y: f32[0]) -> y:\n    for i in serial(0):\n        y[i] = x[i]\n",
        ROW[:0],
    )


def test_text_is_deterministic_and_knows_its_lines() -> None:
    a, b = source_of(LOOKUP), source_of(LOOKUP)
    assert a.text == b.text
    line = next(x for x in a.lines if "outside" in x.text and "if" in x.text)
    assert line.text.endswith("# m.py:7") and line.origins
    assert all(x.origins or x.why for x in a.lines)
