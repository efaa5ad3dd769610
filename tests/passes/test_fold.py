"""fold: constants are computed as PyTorch computes them, to the last bit, or left alone."""

from __future__ import annotations

import pytest
import torch

from tests.passes.harness import check_pass

HEAD = "def f(x: f32[4]) -> {}:\n"

CASES = {
    "arithmetic goes through the dtype": (
        "f32[]",
        ["f32 = full(shape=(), value=2.0, dtype=f32)", "f32 = sqrt(t0)"],
        f"f32 = full(shape=(), value={torch.tensor(2.0).sqrt().item()!r}, dtype=f32)",
    ),
    "integers wrap around": (
        "i64[]",
        [f"i64 = full(shape=(), value={2**63 - 1}, dtype=i64)", "i64 = add(t0, 1)"],
        f"i64 = full(shape=(), value={-(2**63)}, dtype=i64)",
    ),
    "a comparison gives bool": (
        "bool[]",
        ["f32 = full(shape=(), value=nan, dtype=f32)", "bool = eq(t0, t0)"],
        "bool = full(shape=(), value=False, dtype=bool)",
    ),
    "casts": (
        "i32[2]",
        ["f32[2] = full(shape=(2,), value=-1.5, dtype=f32)", "i32[2] = cast(t0, dtype=i32)"],
        "i32[2] = full(shape=(2,), value=-1, dtype=i32)",
    ),
    "layouts": (
        "f32[3, 2]",
        [
            "f32[2] = full(shape=(2,), value=0.5, dtype=f32)",
            "f32[3, 2] = broadcast(t0, shape=(3, 2), dims=(1,))",
        ],
        "f32[3, 2] = full(shape=(3, 2), value=0.5, dtype=f32)",
    ),
    "pad by the same number": (
        "f32[4]",
        [
            "f32[2] = full(shape=(2,), value=0.5, dtype=f32)",
            "f32[4] = pad(t0, low=(1,), high=(1,), value=0.5)",
        ],
        "f32[4] = full(shape=(4,), value=0.5, dtype=f32)",
    ),
    "a literal operand": (
        "f32[4]",
        ["f32[4] = full(shape=(4,), value=0.5, dtype=f32)", "f32[4] = mul(x, t0)"],
        "f32[4] = mul(x, 0.5)",
    ),
    "the literal is what the dtype holds": (
        "f32[4]",
        ["f32[4] = full(shape=(4,), value=0.1, dtype=f32)", "f32[4] = mul(t0, x)"],
        f"f32[4] = mul({torch.tensor(0.1).item()!r}, x)",
    ),
    "where with a constant condition": (
        "f32[4]",
        ["bool[4] = full(shape=(4,), value=False, dtype=bool)", "f32[4] = where(t0, 1.0, x)"],
        "f32[4] = x",
    ),
    "where becomes its literal": (
        "f32[4]",
        ["bool[4] = full(shape=(4,), value=True, dtype=bool)", "f32[4] = where(t0, 1.0, x)"],
        "f32[4] = full(shape=(4,), value=1.0, dtype=f32)",
    ),
    "extremes": (
        "f32[2]",
        [
            "f32[2, 3] = full(shape=(2, 3), value=-2.0, dtype=f32)",
            "f32[2] = reduce_max(t0, dims=(1,))",
        ],
        "f32[2] = full(shape=(2,), value=-2.0, dtype=f32)",
    ),
    "exact sums": (
        "f32[2]",
        [
            "f32[2, 3] = full(shape=(2, 3), value=-2.0, dtype=f32)",
            "f32[2] = reduce_sum(t0, dims=(1,))",
        ],
        "f32[2] = full(shape=(2,), value=-6.0, dtype=f32)",
    ),
    "sums of integers wrap around": (
        "i8[]",
        ["i8[3] = full(shape=(3,), value=100, dtype=i8)", "i8 = reduce_sum(t0, dims=(0,))"],
        "i8 = full(shape=(), value=44, dtype=i8)",
    ),
    "a sum of nothing": (
        "f32[]",
        [
            "f32[0] = slice(x, starts=(4,), stops=(4,), steps=(1,))",
            "f32 = reduce_sum(t0, dims=(0,))",
        ],
        "f32 = full(shape=(), value=0.0, dtype=f32)",
    ),
    "an index with one value": (
        "i64[1, 3]",
        ["i64[1, 3] = iota(shape=(1, 3), dim=0)"],
        "i64[1, 3] = full(shape=(1, 3), value=0, dtype=i64)",
    ),
}


def program(type: str, lines: list[str]) -> str:
    names = [f"t{i}" for i in range(len(lines))]
    rows = [f"    {n}: {x}" for n, x in zip(names, lines)]
    if lines[-1].split(" = ")[1].isidentifier():
        rows, names = rows[:-1], [lines[-1].split(" = ")[1]]
    return HEAD.format(type.replace("[]", "")) + "\n".join([*rows, f"    return {names[-1]}"])


@pytest.mark.parametrize("name", CASES)
def test_folds(name: str) -> None:
    type, before, after = CASES[name]
    want = program(type, [after]).replace("t0", f"t{len(before) - 1}")
    _, records = check_pass("fold,dce", program(type, before), want)
    assert records[0].sentence.startswith("fold folded ")


STAYS = {
    "a rounded sum": (
        "f32[]", ["f32[3] = full(shape=(3,), value=0.5, dtype=f32)", "f32 = reduce_sum(t0, dims=(0,))"],
    ),
    "a sum past 2**24": (
        "f32[]",
        ["f32[16777217] = full(shape=(16777217,), value=2.0, dtype=f32)", "f32 = reduce_sum(t0, dims=(0,))"],
    ),
    "pad by another zero": (
        "f32[4]",
        ["f32[2] = full(shape=(2,), value=0.0, dtype=f32)", "f32[4] = pad(t0, low=(1,), high=(1,), value=-0.0)"],
    ),
    "concat of two numbers": (
        "f32[4]",
        [
            "f32[2] = full(shape=(2,), value=0.0, dtype=f32)",
            "f32[2] = full(shape=(2,), value=1.0, dtype=f32)",
            "f32[4] = concat(t0, t1, dim=0)",
        ],
    ),
    "an input": ("f32[4]", ["f32[4] = mul(x, 2.0)"]),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_stays(name: str) -> None:
    type, lines = STAYS[name]
    check_pass(
        "fold", program(type, lines), program(type, lines), values="16777217" not in lines[0]
    )


def test_one_operand_stays_a_tensor() -> None:
    before = """
    def f(c: bool[4]) -> f32[4]:
        t0: f32[4] = full(shape=(4,), value=0.0, dtype=f32)
        t1: f32[4] = full(shape=(4,), value=-inf, dtype=f32)
        t2: f32[4] = where(c, t0, t1)
        return t2
    """
    after = """
    def f(c: bool[4]) -> f32[4]:
        t1: f32[4] = full(shape=(4,), value=-inf, dtype=f32)
        t2: f32[4] = where(c, 0.0, t1)
        return t2
    """
    check_pass("fold,dce", before, after)
