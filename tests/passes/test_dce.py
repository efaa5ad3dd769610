"""dce: what nobody reads goes, what has an effect stays."""

from __future__ import annotations

from tests.passes.harness import check_pass


def test_chains_go_from_the_end() -> None:
    before = """
    def f(x: f32[4]) -> f32[4]:
        t0: f32[4] = exp(x)   # m.py:1
        t1: f32[4] = neg(t0)  # m.py:2
        t2: f32[4] = sin(x)   # m.py:3
        return t2
    """
    after = "def f(x: f32[4]) -> f32[4]:\n    t2: f32[4] = sin(x)\n    return t2"
    _, records = check_pass("dce", before, after)
    assert records[0].sentence == "dce dropped 2 of 3 nodes: m.py:1, m.py:2"


def test_effects_stay() -> None:
    source = """
    def f(x: f32[4], y: f32[4]) -> f32[4]:
        t0: f32[4] = aten.rand((4,))
        t1: bool = reduce_all(t5, dims=(0,))
        t2: f32[4] = neg(x)
        y[...] = t2
        return x
    """.replace("t1: bool = reduce_all(t5, dims=(0,))", "t1: f32[4] = aten.bernoulli(x)")
    _, records = check_pass("dce", source, source, values=False)
    assert records[0].sentence == "dce changed nothing"


def test_pure_externs_go_and_one_result_keeps_them() -> None:
    before = """
    def f(x: f32[4]) -> i64[4]:
        t0: f32[4]; t1: i64[4]; t0, t1 = aten.sort(x)
        t2: f32[4]; t3: i64[4]; t2, t3 = aten.sort(t0)
        return t1
    """
    after = """
    def f(x: f32[4]) -> i64[4]:
        t0: f32[4]; t1: i64[4]; t0, t1 = aten.sort(x)
        return t1
    """
    check_pass("dce", before, after, values=False)


def test_nodes_without_results_stay() -> None:
    source = """
    def f(x: bool) -> ():
        aten._assert_async(x)  # m.py:1
        return ()
    """
    check_pass("dce", source, source, values=False)
