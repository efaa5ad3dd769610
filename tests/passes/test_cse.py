"""cse: equal computations become one; what is random, or only looks equal, does not."""

from __future__ import annotations

import pytest

from tests.passes.harness import check_pass


def test_merges_and_unites_origins() -> None:
    before = """
    def f(x: f32[4]) -> f32[4]:
        t0: f32[4] = exp(x)       # m.py:1
        t1: f32[4] = exp(x)       # m.py:2
        t2: f32[4] = neg(t0)      # m.py:3
        t3: f32[4] = neg(t1)      # m.py:4
        t4: f32[4] = add(t2, t3)  # m.py:5
        return t4
    """
    after = """
    def f(x: f32[4]) -> f32[4]:
        t0: f32[4] = exp(x)       # m.py:1, m.py:2
        t2: f32[4] = neg(t0)      # m.py:3, m.py:4
        t4: f32[4] = add(t2, t2)  # m.py:5
        return t4
    """
    _, records = check_pass("cse", before, after)
    assert records[0].sentence == "cse merged 2 of 5 nodes: m.py:2, m.py:4"
    assert records[0].counts == {"cse": 2} and records[0].subjects == ("t1", "t3")


def test_outputs_and_writes_follow() -> None:
    before = """
    def f(x: f32[4], y: f32[4]) -> (f32[4], f32[4]):
        t0: f32[4] = exp(x)
        t1: f32[4] = exp(x)
        y[...] = t1
        return t0, t1
    """
    after = """
    def f(x: f32[4], y: f32[4]) -> (f32[4], f32[4]):
        t0: f32[4] = exp(x)
        y[...] = t0
        return t0, t0
    """
    check_pass("cse", before, after)


def test_results_of_several() -> None:
    before = """
    def f(x: f32[4]) -> (f32[4], i64[4]):
        t0: f32[4]; t1: i64[4]; t0, t1 = aten.sort(x)  # m.py:1; extern: test
        t2: f32[4]; t3: i64[4]; t2, t3 = aten.sort(x)  # m.py:2; extern: test
        return t2, t1
    """
    after = """
    def f(x: f32[4]) -> (f32[4], i64[4]):
        t0: f32[4]; t1: i64[4]; t0, t1 = aten.sort(x)  # m.py:1, m.py:2; extern: test
        return t0, t1
    """
    check_pass("cse", before, after)


APART = {
    "random numbers": ["f32[4] = aten.rand((4,))", "f32[4] = aten.rand((4,))"],
    "a zero and its negative": ["f32[4] = mul(x, 0.0)", "f32[4] = mul(x, -0.0)"],
    "attributes": ["f32[4] = flip(x, dims=(0,))", "f32[4] = flip(x, dims=())"],
    "the order of operands": ["f32[4] = sub(x, 1.0)", "f32[4] = sub(1.0, x)"],
    "1 and True": [
        "i64[4] = full(shape=(4,), value=1, dtype=i64)",
        "bool[4] = full(shape=(4,), value=True, dtype=bool)",
    ],
}


@pytest.mark.parametrize("name", APART)
def test_stay_apart(name: str) -> None:
    a, b = APART[name]
    types = f"({a.split(' = ')[0]}, {b.split(' = ')[0]})"
    source = f"def f(x: f32[4]) -> {types}:\n    t0: {a}\n    t1: {b}\n    return t0, t1"
    _, records = check_pass("cse", source, source, values="random" not in name)
    assert records[0].sentence == "cse changed nothing"


def test_equal_nans_merge() -> None:
    before = """
    def f(x: f32[4]) -> (f32[4], f32[4]):
        t0: f32[4] = mul(x, nan)
        t1: f32[4] = mul(x, nan)
        return t0, t1
    """
    after = before.replace("        t1: f32[4] = mul(x, nan)\n", "").replace("t0, t1", "t0, t0")
    check_pass("cse", before, after)
