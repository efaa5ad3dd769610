"""The interpreters against PyTorch: every form of loop, at full precision of the dtype."""

from __future__ import annotations

import pytest
import torch

import minicompile.ops  # noqa: F401  (fills the op table)
from minicompile.ir.graph import Graph
from minicompile.ir.interpret import run, run_graph, run_kernel
from minicompile.ir.interpret_loop import LIMIT
from minicompile.ir.loop import Kernel, Program
from minicompile.ir.text import parse
from minicompile.ir.verify import verify


def kernel(text: str, **buffers: torch.Tensor) -> None:
    """Verify and run a kernel."""
    parsed = parse(text)
    assert isinstance(parsed, Kernel)
    verify(parsed)
    run_kernel(parsed, buffers)


def graph(text: str) -> Graph:
    parsed = parse(text)
    assert isinstance(parsed, Graph)
    return parsed


# ---------------------------------------------------------------------------------- kernels


def test_elementwise_over_strided_buffers() -> None:
    x, y = torch.randn(5, 7).t(), torch.empty(5, 7)
    kernel(
        """\
def k(x: f32[7, 5] @ strides(1, 7), y: f32[5, 7]) -> y:
    for i in serial(5):
        for j in serial(7):
            y[i, j] = exp(x[j, i]) * 2.0 - x[6 - j, 4 - i]
""",
        x=x, y=y,
    )  # fmt: skip
    assert torch.equal(y, (x.exp() * 2 - x.flip(0, 1)).t())


def test_softmax_row_by_row_with_a_local_buffer() -> None:
    x, y = torch.randn(6, 40), torch.empty(6, 40)
    kernel(
        """\
def k(x: f32[6, 40], y: f32[6, 40]) -> y:
    for i in parallel(6):
        m: f32 @ register
        m = -inf
        for k in serial(40):
            m = max(m, x[i, k])
        top: f32 = m
        e: f32[40] @ local
        for k in serial(40):
            e[k] = exp(x[i, k] - top)
        s: f32 @ register
        s = 0.0
        for k in serial(40):
            s += e[k]
        for k in serial(40):
            y[i, k] = e[k] / s
""",
        x=x, y=y,
    )  # fmt: skip
    torch.testing.assert_close(y, x.softmax(1))


@pytest.mark.parametrize(
    "combine, start, reference",
    [
        ("acc = max(acc, x[i, k])", "-inf", lambda x: x.amax(1)),
        ("acc = min(acc, x[i, k])", "inf", lambda x: x.amin(1)),
        ("acc += x[i, k]", "0.0", lambda x: x.sum(1)),
        ("acc *= x[i, k]", "1.0", lambda x: x.prod(1)),
        ("acc += 1.0", "0.0", lambda x: torch.full((4,), 9.0)),
    ],
)
def test_reductions_and_nan(combine: str, start: str, reference: object) -> None:
    x, y = torch.randn(4, 9), torch.empty(4)
    x[2, 3] = float("nan")
    kernel(
        f"""\
def k(x: f32[4, 9], y: f32[4]) -> y:
    for i in serial(4):
        acc: f32 @ register
        acc = {start}
        for k in serial(9):
            {combine}
        y[i] = acc
""",
        x=x, y=y,
    )  # fmt: skip
    torch.testing.assert_close(y, reference(x), equal_nan=True)  # type: ignore[operator]


def test_bool_reductions_integers_wrap_and_half_precision_is_storage() -> None:
    b, some, every = torch.rand(9) > 0.5, torch.tensor(False), torch.tensor(True)
    n, total = torch.full((9,), 2**30, dtype=torch.int32), torch.zeros((), dtype=torch.int32)
    h, half = torch.randn(9, dtype=torch.bfloat16), torch.empty(9, dtype=torch.bfloat16)
    kernel(
        """\
def k(
    b: bool[9], n: i32[9], h: bf16[9], some: bool, every: bool, total: i32, half: bf16[9]
) -> (some, every, total, half):
    for i in serial(9):
        some[()] |= b[i]
        every[()] &= b[i]
        total[()] += n[i]
        half[i] = cast(cast(h[i], f32) * 3.0, bf16)
""",
        b=b, n=n, h=h, some=some, every=every, total=total, half=half,
    )  # fmt: skip
    assert some == b.any() and every == b.all()
    assert total == n.sum(dtype=torch.int32)
    assert torch.equal(half, (h.float() * 3).bfloat16())


def test_padded_convolution() -> None:
    x, w, y = torch.randn(2, 3, 8, 9), torch.randn(4, 3, 3, 3), torch.empty(2, 4, 4, 5)
    kernel(
        """\
def k(x: f32[2, 3, 8, 9], w: f32[4, 3, 3, 3], y: f32[2, 4, 4, 5]) -> y:
    for n in parallel(2):
        for o in serial(4):
            for i in serial(4):
                for j in serial(5):
                    acc: f32 @ register
                    acc = 0.0
                    for c in serial(3):
                        for p in serial(3):
                            for q in serial(3):
                                acc += (x[n, c, i * 2 + p - 1, j * 2 + q - 1] if 0 <= i * 2 + p - 1 < 8 and 0 <= j * 2 + q - 1 < 9 else 0.0) * w[o, c, p, q]
                    y[n, o, i, j] = acc
""",
        x=x, w=w, y=y,
    )  # fmt: skip
    torch.testing.assert_close(y, torch.conv2d(x, w, stride=2, padding=1), atol=1e-5, rtol=1e-5)


def test_scan_runs_in_order() -> None:
    x, y, z = torch.randn(3, 20), torch.empty(3, 20), torch.empty(3, 20)
    kernel(
        """\
def k(x: f32[3, 20], y: f32[3, 20], z: f32[3, 20]) -> (y, z):
    for i in serial(3):
        acc: f32 @ register
        acc = 0.0
        for k in serial(20):
            before: f32 = acc
            acc += x[i, k]
            y[i, k] = acc
            z[i, k] = before
""",
        x=x, y=y, z=z,
    )  # fmt: skip
    torch.testing.assert_close(y, x.cumsum(1))
    assert torch.equal(z[:, 1:], y[:, :-1]) and not z[:, 0].any()


def test_a_recurrence_through_memory_runs_in_order() -> None:
    y = torch.empty(10)
    kernel(
        """\
def k(y: f32[10]) -> y:
    y[0] = 1.0
    for i in serial(9):
        y[i + 1] = y[i] * 2.0
""",
        y=y,
    )
    assert torch.equal(y, 2.0 ** torch.arange(10))


GATHER = """\
def k(x: f32[5, 4], ids: i64[3, 2], y: f32[3, 2, 4]) -> y:
    for i in serial(3):
        for j in serial(2):
            at: i64 = ids[i, j]
            check(at, 5)
            for k in serial(4):
                y[i, j, k] = x[at, 3 - k]
"""


def test_gather_and_its_check() -> None:
    x, y, ids = torch.randn(5, 4), torch.empty(3, 2, 4), torch.randint(5, (3, 2))
    kernel(GATHER, x=x, ids=ids, y=y)
    assert torch.equal(y, x[ids].flip(-1))
    for bad in (-1, 5):
        ids[1, 1] = bad
        with pytest.raises(IndexError, match="size 5"):
            kernel(GATHER, x=x, ids=ids, y=y)


@pytest.mark.parametrize("op", ["=", "+=", "max"])
def test_scatter_with_repeated_indices(op: str) -> None:
    x, src, ids = torch.randn(5, 4), torch.randn(6, 4), torch.tensor([1, 1, 3, 0, 3, 3])
    y = torch.empty(5, 4)
    change = "y[at, k] = max(y[at, k], src[i, k])" if op == "max" else f"y[at, k] {op} src[i, k]"
    kernel(
        f"""\
def k(x: f32[5, 4], ids: i64[6], src: f32[6, 4], y: f32[5, 4]) -> y:
    for i in serial(5):
        for k in serial(4):
            y[i, k] = x[i, k]
    for i in serial(6):
        at: i64 = ids[i]
        check(at, 5)
        for k in serial(4):
            {change}
""",
        x=x, ids=ids, src=src, y=y,
    )  # fmt: skip
    want = x.clone()
    for i, at in enumerate(ids):
        new = src[i] if op == "=" else want[at] + src[i] if op == "+=" else want[at].max(src[i])
        want[at] = new
    torch.testing.assert_close(y, want)


TILED = """\
def k(x: f32[20, 30], w: f32[30, 40], b: f32[40], y: f32[20, 40]) -> y:
    for j0 in parallel(3, step=16, last=24):
        for i0 in serial(4, step=6, last=14):
            acc: f32[6, 16] @ register
            for i1 in unroll(6):
                for j1 in vector(16):
                    acc[i1, j1] = 0.0
            for k in serial(30):
                for i1 in unroll(6):
                    for j1 in vector(16):
                        acc[i1, j1] += x[i0 + i1, k] * w[k, j0 + j1]
            for i1 in unroll(6):
                for j1 in vector(16):
                    t0: f32 = acc[i1, j1]
                    y[i0 + i1, j0 + j1] = maximum(t0 + b[j0 + j1], 0.0)
"""


def test_register_tiles_with_shifted_tails() -> None:
    x, w, b, y = torch.randn(20, 30), torch.randn(30, 40), torch.randn(40), torch.empty(20, 40)
    kernel(TILED, x=x, w=w, b=b, y=y)
    torch.testing.assert_close(y, (x @ w + b).relu(), atol=1e-5, rtol=1e-5)


def test_short_vectors_fold_and_leave_their_neighbours_alone() -> None:
    x, y, z = torch.randn(3, 26), torch.zeros(3), torch.full((3, 26), 7.0)
    kernel(
        """\
def k(x: f32[3, 26], y: f32[3], z: f32[3, 26]) -> (y, z):
    for i in serial(3):
        acc: f32[16] @ register
        for v in vector(16):
            acc[v] = 0.0
        for v in vector(16):
            acc[v] += x[i, v]
        for v in vector(16, active=10):
            acc[v] += x[i, v + 16]
            z[i, v + 16] = x[i, v + 16]
        y[i] = fold_add(acc)
""",
        x=x, y=y, z=z,
    )  # fmt: skip
    torch.testing.assert_close(y, x.sum(1))
    assert torch.equal(z[:, 16:], x[:, 16:]) and (z[:, :16] == 7).all()


def test_quotients_and_index_values() -> None:
    x, y = torch.randn(6, 4), torch.empty(24)
    kernel(
        """\
def k(x: f32[6, 4], y: f32[24]) -> y:
    for i in parallel(24):
        y[i] = x[i // 4, i % 4] + cast(index(i * 2 + 1), f32)
""",
        x=x, y=y,
    )  # fmt: skip
    assert torch.equal(y, x.reshape(-1) + (torch.arange(24) * 2 + 1))


def test_joined_arms_read_only_where_they_are_taken() -> None:
    a, b, y = torch.randn(3), torch.randn(5), torch.empty(8)
    kernel(
        """\
def k(a: f32[3], b: f32[5], y: f32[8]) -> y:
    for i in serial(8):
        y[i] = a[i] if 0 <= i < 3 else b[i - 3]
""",
        a=a, b=b, y=y,
    )  # fmt: skip
    assert torch.equal(y, torch.cat([a, b]))


def test_uninitialised_memory_shows() -> None:
    y = torch.empty(2)
    parsed = parse(
        "def k(y: f32[2]) -> y:\n    t: f32[2] @ local\n    t[0] = 1.0\n    y[0] = t[1]\n"
    )
    assert isinstance(parsed, Kernel)
    run_kernel(parsed, {"y": y})
    assert y[0].isnan()


def test_long_loops_run_in_chunks() -> None:
    n = LIMIT + 5
    x, y = torch.randn(n), torch.empty(n)
    text = (
        f"def k(x: f32[{n}], y: f32[{n}]) -> y:\n    for i in serial({n}):\n        y[i] = -x[i]\n"
    )
    kernel(text.replace("-x[i]", "neg(x[i])"), x=x, y=y)
    assert torch.equal(y, -x)


def test_threads_run_in_lockstep_between_barriers() -> None:
    x, y = torch.randn(8), torch.empty(8)
    kernel(
        """\
def k(x: f32[8], y: f32[8]) -> y:
    s: f32[8] @ shared
    for t in thread(8):
        s[t] = x[t]
        barrier()
        y[t] = s[7 - t]
""",
        x=x, y=y,
    )  # fmt: skip
    assert torch.equal(y, x.flip(0))


# ---------------------------------------------------------------------------------- graphs

GRAPH = """\
def f(x: f32[2, 3], n: i64[3], *, w: f32[2, 3]) -> (f32[2, 3], f32[3], f32[2, 3]):
    t0: f32[2, 3] = aten.add.Tensor(x, w, alpha=2)  # m.py:1
    t1: f32[2, 3] = mul(t0, 3.0)                    # m.py:2
    t2: f32[2, 3] = maximum(t1, 0.0)                # m.py:3
    t3: f32[2]; t4: i64[2]; t3, t4 = aten.max.dim(t2, 1)  # m.py:4
    w[...] = x
    x[...] = w
    return strided(t2, (1, 2)), view(x, (3,), (1,), 3), w
"""


def test_graph_with_both_levels_views_strides_and_write_backs() -> None:
    x, n, w = torch.randn(2, 3), torch.arange(3), torch.randn(2, 3)
    old_x, old_w = x.clone(), w.clone()
    verify(graph(GRAPH))
    out, view, old = run(graph(GRAPH), [x, n, w])
    torch.testing.assert_close(out, ((old_x + 2 * old_w) * 3).relu())
    assert out.stride() == (1, 2)
    assert torch.equal(x, old_w) and torch.equal(w, old_x) and torch.equal(old, old_w)
    assert torch.equal(view, old_w[1]) and view.data_ptr() == x[1].data_ptr()


def test_all_values_and_float64() -> None:
    text = """\
def f(x: f32[100]) -> f32[100]:
    t0: f32[100] = cast(x, dtype=f64)
    t1: f32[100] = cast(t0, dtype=f32)
    t2: f32[100] = exp(t1)
    t3: f32[100] = aten.to.dtype(t2, f32)
    t4: f32[100] = div(t3, 3.0)
    return t4
"""
    x = torch.randn(100)
    values = run_graph(graph(text), {"x": x})
    assert list(values) == ["x", "t0", "t1", "t2", "t3", "t4"]
    assert values["t4"].dtype is torch.float32
    exact = run_graph(graph(text), {"x": x}, upcast=True)["t4"]
    assert exact.dtype is torch.float64
    assert torch.equal(exact, x.double().exp() / 3)


def test_constants_take_the_dtype_of_their_operands() -> None:
    text = """\
def f(x: f64, n: i32[3]) -> (f64, i32[3]):
    t0: f64 = add(x, 0.1)
    t1: i32[3] = mul(n, 3)
    return t0, t1
"""
    x, n = torch.tensor(0.2, dtype=torch.float64), torch.arange(3, dtype=torch.int32)
    a, b = run(graph(text), [x, n])
    assert a == 0.2 + 0.1 and b.dtype is torch.int32 and torch.equal(b, n * 3)


# ---------------------------------------------------------------------------------- programs

PROGRAM = """\
def k0(x: f32[2, 3] @ strides(1, 2), y: f32[2, 3]) -> y:
    for i in serial(2):
        for j in serial(3):
            y[i, j] = x[i, j] * 2.0


def k1(x: f32[6], y: f32[2, 3] @ strides(1, 2)) -> y:
    for i in serial(2):
        for j in serial(3):
            y[i, j] = x[i * 3 + j] + 1.0


def f(x: f32[2, 3] @ strides(1, 2), *, w: f32[2, 3]) -> (f32[2, 3], f32[2]):
    arena: u8[64]
    t1: f32[2, 3] @ arena(offset=0)
    t2: f32[2, 3] @ tensor
    v: f32[6] @ alias(t2)
    t3: f32[2, 3] @ strides(1, 2) @ output
    k0(x, t1)
    t2: f32[2, 3] = aten.sin(t1)
    k1(v, t3)
    w[...] = t1
    return strided(t3, (1, 2)), view(x, (2,), (1,), 2)
"""


def test_program_with_arena_alias_extern_and_write_back() -> None:
    parsed = parse(PROGRAM.replace("aten.sin(t1)", "aten.sin(t1)  # m.py:1"))
    assert isinstance(parsed, Program)
    verify(parsed)
    x, w = torch.randn(3, 2).t(), torch.zeros(2, 3)
    out, view = run(parsed, [x, w])
    torch.testing.assert_close(out, (x * 2).sin() + 1)
    assert out.stride() == (1, 2) and torch.equal(w, x * 2)
    assert torch.equal(view, x[:, 1]) and view.data_ptr() == x[:, 1].data_ptr()
