"""lower: one nest per materialised value, everything else in place."""

from __future__ import annotations

import pytest

from minicompile.ir.loop import Program
from tests.lower.graphs import LINEAR, SOFTMAX, kernel_text, lowered


def body(source: str, merge: bool = False, n: int = 0) -> str:
    return kernel_text(lowered(source, merge), n)


def test_elementwise_is_one_nest() -> None:
    source = """
def f(x: f32[4, 8], y: f32[4, 8]) -> f32[4, 8]:
    t0: f32[4, 8] = mul(x, 2.0)
    t1: f32[4, 8] = add(t0, y)
    return t1
"""
    assert body(source) == (
        "def k0(x: f32[4, 8], y: f32[4, 8], t1: f32[4, 8]) -> t1:\n"
        "    for i0 in serial(4):\n"
        "        for i1 in serial(8):\n"
        "            t0: f32 = x[i0, i1] * 2.0\n"
        "            t1[i0, i1] = t0 + y[i0, i1]"
    )


def test_layouts_are_indices() -> None:
    source = """
def f(x: f32[4, 8]) -> f32[3, 4]:
    t0: f32[8, 4] = permute(x, dims=(1, 0))
    t1: f32[8, 4] = flip(t0, dims=(0,))
    t2: f32[3, 4] = slice(t1, starts=(1, 0), stops=(6, 4), steps=(2, 1))
    return t2
"""
    assert "t2[i0, i1] = x[i1, 6 - i0 * 2]" in body(source)


def test_a_pad_reads_only_inside() -> None:
    source = """
def f(x: f32[4]) -> f32[7]:
    t0: f32[4] = exp(x)
    t1: f32[7] = pad(t0, low=(2,), high=(1,), value=0.0)
    return t1
"""
    assert "t1[i0] = exp(x[i0 - 2]) if 0 <= i0 - 2 < 4 else 0.0" in body(source)


def test_both_arms_of_a_concat_are_guarded() -> None:
    source = """
def f(x: f32[2, 3], y: f32[2, 4]) -> f32[2, 7]:
    t0: f32[2, 4] = neg(y)
    t1: f32[2, 7] = concat(x, t0, dim=1)
    return t1
"""
    assert "x[i0, i1] if 0 <= i1 < 3 else neg(y[i0, i1 - 3])" in body(source)


def test_a_merging_reshape_splits_the_loop() -> None:
    source = """
def f(x: f32[2, 4, 3]) -> f32[4, 6]:
    t0: f32[4, 2, 3] = permute(x, dims=(1, 0, 2))
    t1: f32[4, 6] = reshape(t0, shape=(4, 6))
    return t1
"""
    assert "t0[i0, i1, i2] = x[i1, i0, i2]" in body(source)  # the nest runs over the finer shape


def test_a_reduction_over_a_reshape_splits_its_loop() -> None:
    source = """
def f(x: f32[2, 4, 3]) -> f32[4]:
    t0: f32[4, 2, 3] = permute(x, dims=(1, 0, 2))
    t1: f32[4, 6] = reshape(t0, shape=(4, 6))
    t2: f32[4] = reduce_sum(t1, dims=(1,))
    return t2
"""
    text = body(source)
    assert "for r0 in serial(2):" in text and "for r0_1 in serial(3):" in text
    assert "+= x[r0, i0, r0_1]" in text


def test_a_reshape_of_an_input_is_free() -> None:
    program = lowered(
        """
def f(x: f32[4, 6]) -> f32[24]:
    t0: f32[24] = reshape(x, shape=(24,))
    t1: f32[24] = exp(t0)
    return t1
"""
    )
    assert program.buffer("t0").place == "alias" and program.buffer("t0").base == "x"


def test_a_reshape_of_strided_memory_is_not_free() -> None:
    source = """
def f(x: f32[4, 6] @ strides(1, 4)) -> f32[24]:
    t0: f32[24] = reshape(x, shape=(24,))
    t1: f32[24] = exp(t0)
    return t1
"""
    assert "exp(x[i0, i0_1])" in body(source)


def test_contraction() -> None:
    assert body(LINEAR).splitlines()[2:10] == [
        "    for i0 in serial(4):",
        "        for i1 in serial(6):",
        "            t0_acc: f32 @ register",
        "            t0_acc = 0.0",
        "            for r0 in serial(8):",
        "                t0_product: f32 = x[i0, r0] * w[i1, r0]",
        "                t0_acc += t0_product",
        "            t0[i0, i1] = t0_acc",
    ]


def test_gather_checks_its_index() -> None:
    source = """
def f(w: f32[3, 8], ids: i64[5]) -> f32[5, 8]:
    t0: f32[5, 8] = gather(w, ids, dims=(0,))
    return t0
"""
    text = body(source, merge=True)
    assert "t0_at: i64 = ids[i0]\n        check(t0_at, 3)\n        for i1" in text
    assert "t0[i0, i1] = w[t0_at, i1]" in text


def test_scatter_copies_first() -> None:
    source = """
def f(x: f32[3, 8], s: f32[5, 8], ids: i64[5]) -> f32[3, 8]:
    t0: f32[3, 8] = scatter(x, s, ids, dims=(0,), combine="add")
    return t0
"""
    assert body(source).count("t0[") == 2


def test_scan_runs_along_its_axis_inside() -> None:
    source = """
def f(x: f32[3, 5, 4]) -> f32[3, 5, 4]:
    t0: f32[3, 5, 4] = scan_sum(x, dim=1)
    return t0
"""
    rows = body(source).splitlines()
    assert [r.strip() for r in rows if "for" in r] == [
        "for i0 in serial(3):",
        "for i2 in serial(4):",
        "for i1 in serial(5):",
    ]


@pytest.mark.parametrize("shape", ["0, 8", "4, 0"])
def test_nothing_runs_for_empty_tensors(shape: str) -> None:
    kept = shape.split(",")[0]
    source = f"""
def f(x: f32[{shape}]) -> (f32[{shape}], f32[{kept}]):
    t0: f32[{shape}] = exp(x)
    t1: f32[{kept}] = reduce_sum(x, dims=(1,))
    return t0, t1
"""
    lowered(source)


def test_zero_dimensions() -> None:
    lowered(
        """
def f(x: f32, y: f32[4]) -> (f32, f32):
    t0: f32 = exp(x)
    t1: f32 = reduce_max(y, dims=(0,))
    return t0, t1
"""
    )


def test_equal_kernels_are_kept_once() -> None:
    program = lowered(
        """
def f(x: f32[4, 8]) -> f32[4, 8]:
    with k0:
        t0: f32[4, 8] = exp(x)
    with k1:
        t1: f32[4, 8] = exp(t0)
    with k2:
        t2: f32[4, 8] = neg(t1)
    return t2
"""
    )
    assert [k.name for k in program.kernels] == ["k0", "k2"]
    assert [c.kernel for c in program.calls] == ["k0", "k0", "k2"]  # type: ignore[union-attr]


def places(program: Program) -> dict[str, str]:
    return {b.name: b.place for b in program.buffers}


def test_places() -> None:
    program = lowered(
        """
def f(x: f32[4, 8]) -> (f32[4, 8], f32[4, 8]):
    with k0:
        t0: f32[4, 8] = exp(x)
    with k1:
        t1: f32[4, 8] = neg(t0)
    with k2:
        t2: f32[4, 8] = sqrt(t1)
    return t1, t2
"""
    )
    assert places(program) == {"x": "input", "t0": "arena", "t1": "output", "t2": "output"}


def test_an_output_with_eager_strides_is_written_in_place() -> None:
    program = lowered(
        """
def f(x: f32[4, 8]) -> f32[4, 8]:
    with k0:
        t0: f32[4, 8] = exp(x)
    return strided(t0, (1, 4))
"""
    )
    assert program.buffer("t0").type.strides == (1, 4)


def test_an_input_returned_as_a_value_is_copied() -> None:
    program = lowered("def f(x: f32[4, 8]) -> f32[4, 8]:\n    return x\n")
    assert [k.name for k in program.kernels] == ["copy_x_out0"]


def test_an_extern_gets_tensors() -> None:
    program = lowered(
        """
def f(x: f32[4, 8]) -> f32[4, 8]:
    with k0:
        t0: f32[4, 8] = exp(x)
    t1: f32[4, 8]; t2: i64[4, 8]; t1, t2 = aten.sort(t0)
    with k1:
        t3: f32[4, 8] = neg(t1)
    return t3
"""
    )
    assert places(program) == {
        "x": "input",
        "t0": "tensor",
        "t1": "tensor",
        "t2": "tensor",
        "t3": "output",
    }


def test_broadcast_arithmetic_is_done_once() -> None:
    source = """
def f(x: f32[4, 8], v: f32[8]) -> f32[4, 8]:
    t0: f32[8] = add(v, 1e-05)
    t1: f32[8] = rsqrt(t0)
    t2: f32[4, 8] = broadcast(t1, shape=(4, 8), dims=(1,))
    t3: f32[4, 8] = mul(x, t2)
    return t3
"""
    text = body(source)
    assert text.count("rsqrt") == 1 and "t1: f32[8] @ arena" in text


def test_softmax_unmerged_has_a_nest_per_value() -> None:
    text = body(SOFTMAX)
    assert text.count("    for i0") == 4  # max, exp, sum, div


def test_a_result_is_read_under_its_own_name_only() -> None:
    program = lowered(
        """
def f(x: f32[4, 6], y: f32[24]) -> (f32[4, 6], f32[24]):
    t0: f32[4, 6] = exp(x)
    t1: f32[24] = reshape(t0, shape=(24,))
    t2: f32[24] = add(t1, y)
    return t0, t2
"""
    )
    assert [p.name for p in program.kernels[0].params] == ["x", "y", "t0", "t2"]


def test_larger_contractions_multiply_and_add_at_once() -> None:
    source = LINEAR.replace("8]", "128]")
    assert "t0_acc += x[i0, r0] * w[i1, r0]" in body(source)
