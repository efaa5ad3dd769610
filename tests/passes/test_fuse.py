"""fuse: what shares a kernel, what does not, and the reasons given."""

from __future__ import annotations

import time

import pytest

from minicompile.ir.graph import Graph, Output, Value, Verdict
from minicompile.ir.types import TensorType, f32
from minicompile.ops import elementwise as E
from minicompile.ops import gather as G
from minicompile.ops import layout as L
from minicompile.ops import reduction as R
from minicompile.ops.build import Builder, wrap
from minicompile.passes.manager import PassManager
from tests.passes.harness import check_values, graph


def fuse(source: str, options: str = "") -> Graph:
    old = graph(source)
    new, _ = PassManager.of(f"fuse{options}").run(old)
    check_values(old, new)
    return new


def kernels(g: Graph) -> list[str]:
    """The kernels as texts: ``t0 t1``."""
    return [" ".join(group.nodes) for group in g.groups]


def verdict(g: Graph, producer: str, consumer: str) -> Verdict:
    return next(v for v in g.verdicts if (v.producer, v.consumer) == (producer, consumer))


# ---------------------------------------------------------------------------------- one pass


def test_elementwise_chain_with_two_results() -> None:
    g = fuse("""
    def f(x: f32[4, 8], b: f32[8]) -> (f32[4, 8], f32[4, 8]):
        t0: f32[4, 8] = broadcast(b, shape=(4, 8), dims=(1,))
        t1: f32[4, 8] = add(x, t0)
        t2: f32[4, 8] = exp(t1)
        t3: f32[4, 8] = neg(t1)
        return t2, t3
    """)
    assert kernels(g) == ["t0 t1 t2 t3"]
    assert verdict(g, "t1", "t2") == Verdict("t1", "t2", True, "one pass over (4, 8)")


def test_reshapes_do_not_separate() -> None:
    g = fuse("""
    def f(x: f32[4, 8]) -> f32[2, 16]:
        t0: f32[4, 8] = exp(x)
        t1: f32[2, 16] = reshape(t0, shape=(2, 16))
        t2: f32[2, 16] = neg(t1)
        return t2
    """)
    assert kernels(g) == ["t0 t1 t2"]


def test_a_permuted_producer_is_computed_where_it_is_read() -> None:
    source = """
    def f(x: f32[4, 8]) -> {}:
        t0: f32[4, 8] = exp(x)
        t1: f32[8, 4] = permute(t0, dims=(1, 0))
        t2: f32[8, 4] = neg(t1)
        return {}
    """
    g = fuse(source.format("f32[8, 4]", "t2"))
    assert kernels(g) == ["t0 t1 t2"]
    assert verdict(g, "t0", "t2").reason == "computed where it is read"
    g = fuse(source.format("(f32[4, 8], f32[8, 4])", "t0, t2"))
    assert kernels(g) == ["t0", "t1 t2"]
    assert "it is a result" in verdict(g, "t0", "t2").reason


def test_repeated_work_is_done_once() -> None:
    g = fuse("""
    def f(x: f32[8], y: f32[4, 8]) -> f32[4, 8]:
        t0: f32[8] = exp(x)
        t1: f32[4, 8] = broadcast(t0, shape=(4, 8), dims=(1,))
        t2: f32[4, 8] = mul(y, t1)
        return t2
    """)
    assert kernels(g) == ["t0", "t1 t2"]
    assert verdict(g, "t0", "t2").reason == (
        "each element would be computed 4 times: exp runs over (8,); mul runs over (4, 8)"
    )


def test_masks_are_computed_again_in_each_kernel() -> None:
    g = fuse("""
    def f(x: f32[4, 4]) -> f32[4, 4]:
        t0: i64[4, 4] = iota(shape=(4, 4), dim=0)
        t1: i64[4, 4] = iota(shape=(4, 4), dim=1)
        t2: bool[4, 4] = le(t1, t0)
        t3: f32[4, 4] = where(t2, x, 0.0)
        t4: f32[4, 4] = contract(t3, x, spec="ik,kj->ij")
        t5: f32[4, 4] = where(t2, t4, 0.0)
        return t5
    """)
    assert kernels(g) == ["t0 t1 t2 t3", "t0_k1 t1_k1 t2_k1 t4 t5"]
    assert verdict(g, "t2_k1", "t5").reason == "cheaper to compute again than to load"


def test_a_mask_that_is_a_result_exists_once() -> None:
    g = fuse("""
    def f(x: f32[4]) -> (bool[4], f32[4]):
        t0: i64[4] = iota(shape=(4,), dim=0)
        t1: bool[4] = lt(t0, 2)
        t2: f32[4] = where(t1, x, 0.0)
        return t1, t2
    """)
    assert kernels(g) == ["t0 t1 t2"]


# ---------------------------------------------------------------------------------- rows

SOFTMAX = """
def f(x: f32[{0}, {1}]) -> f32[{0}, {1}]:
    t0: f32[{0}] = reduce_max(x, dims=(1,))
    t1: f32[{0}, {1}] = broadcast(t0, shape=({0}, {1}), dims=(0,))
    t2: f32[{0}, {1}] = sub(x, t1)
    t3: f32[{0}, {1}] = exp(t2)
    t4: f32[{0}] = reduce_sum(t3, dims=(1,))
    t5: f32[{0}, {1}] = broadcast(t4, shape=({0}, {1}), dims=(0,))
    t6: f32[{0}, {1}] = div(t3, t5)
    return t6
"""


def test_softmax_is_one_kernel() -> None:
    g = fuse(SOFTMAX.format(4, 8))
    assert kernels(g) == ["t0 t1 t2 t3 t4 t5 t6"]
    assert verdict(g, "t0", "t2").reason == "rows of 8 stay in the kernel"
    assert verdict(g, "t3", "t4").reason == "reduced as it is computed, over (4, 8)"


def test_long_rows_leave_the_cache() -> None:
    g, _ = PassManager.of("fuse").run(graph(SOFTMAX.format(1, 100000)))
    assert kernels(g) == ["t0", "t1 t2 t3 t4", "t5 t6"] or len(g.groups) == 3
    assert "a row of 100000 leaves the cache" in verdict(g, "t0", "t2").reason


def test_group_norm_splits_the_channels() -> None:
    g = fuse("""
    def f(x: f32[2, 6, 4], w: f32[6]) -> f32[2, 6, 4]:
        t0: f32[2, 3, 8] = reshape(x, shape=(2, 3, 8))
        t1: f32[2, 3] = reduce_sum(t0, dims=(2,))
        t2: f32[2, 3, 8] = broadcast(t1, shape=(2, 3, 8), dims=(0, 1))
        t3: f32[2, 3, 8] = sub(t0, t2)
        t4: f32[2, 6, 4] = reshape(t3, shape=(2, 6, 4))
        t5: f32[2, 6, 4] = broadcast(w, shape=(2, 6, 4), dims=(1,))
        t6: f32[2, 6, 4] = mul(t4, t5)
        return t6
    """)
    assert len(g.groups) == 1


def test_rows_of_different_sizes() -> None:
    g = fuse("""
    def f(x: f32[4, 8]) -> f32[4, 8]:
        t0: f32[4] = reduce_sum(x, dims=(1,))
        t1: f32[4, 8] = broadcast(t0, shape=(4, 8), dims=(0,))
        t2: f32[4, 8] = div(x, t1)
        t3: f32 = reduce_max(t2, dims=(0, 1))
        t4: f32[4, 8] = broadcast(t3, shape=(4, 8), dims=())
        t5: f32[4, 8] = div(t2, t4)
        return t5
    """)
    assert kernels(g) == ["t0 t1 t2", "t3 t4 t5"]
    assert verdict(g, "t2", "t3").reason.startswith("rows of 8 and rows of 32: ")


def test_two_reductions_of_the_same_rows_meet() -> None:
    g = fuse("""
    def f(x: f32[4, 8]) -> f32[4]:
        t0: f32[4] = reduce_sum(x, dims=(1,))
        t1: f32[4, 8] = mul(x, x)
        t2: f32[4] = reduce_sum(t1, dims=(1,))
        t3: f32[4] = sub(t2, t0)
        return t3
    """)
    assert kernels(g) == ["t0 t1 t2 t3"]


def test_reductions_over_leading_axes_stand_alone() -> None:
    g = fuse("""
    def f(x: f32[4, 8]) -> f32[4, 8]:
        t0: f32[4, 8] = exp(x)
        t1: f32[8] = reduce_sum(t0, dims=(0,))
        t2: f32[8] = add(t1, 1.0)
        t3: f32[4, 8] = broadcast(t2, shape=(4, 8), dims=(1,))
        t4: f32[4, 8] = div(x, t3)
        return t4
    """)
    assert kernels(g) == ["t0 t1 t2", "t3 t4"]


# ---------------------------------------------------------------------------------- contractions


def test_epilogue_with_bias_activation_and_residual() -> None:
    g = fuse("""
    def f(x: f32[4, 8], w: f32[8, 8], b: f32[8]) -> f32[4, 8]:
        t0: f32[4, 8] = contract(x, w, spec="ik,kj->ij")
        t1: f32[4, 8] = broadcast(b, shape=(4, 8), dims=(1,))
        t2: f32[4, 8] = add(t0, t1)
        t3: f32[4, 8] = tanh(t2)
        t4: f32[4, 8] = mul(t2, t3)
        t5: f32[4, 8] = add(x, t4)
        return t5
    """)
    assert len(g.groups) == 1
    assert verdict(g, "t2", "t4").reason.startswith("epilogue: ")


def test_no_prologue() -> None:
    g = fuse("""
    def f(x: f32[32, 64], w: f32[64, 10]) -> f32[32, 10]:
        t0: f32[32, 64] = exp(x)
        t1: f32[32, 10] = contract(t0, w, spec="ik,kj->ij")
        return t1
    """)
    assert kernels(g) == ["t0", "t1"]
    assert verdict(g, "t0", "t1").reason == (
        "each element would be computed 10 times: exp runs over (32, 64); "
        "contract sums over k: 64 for each of (i: 32, j: 10)"
    )


def test_two_contractions() -> None:
    g = fuse("""
    def f(x: f32[4, 8], w: f32[8, 8]) -> f32[4, 8]:
        t0: f32[4, 8] = contract(x, w, spec="ik,kj->ij")
        t1: f32[4, 8] = contract(x, w, spec="ik,jk->ij")
        t2: f32[4, 8] = mul(t0, t1)
        return t2
    """)
    assert kernels(g) == ["t0", "t1 t2"]
    assert verdict(g, "t0", "t2").reason.startswith("two contractions never share a kernel")


def test_softmax_behind_a_contraction() -> None:
    g = fuse("""
    def f(x: f32[4, 8], w: f32[8, 8]) -> f32[4, 8]:
        t0: f32[4, 8] = contract(x, w, spec="ik,kj->ij")
        t1: f32[4] = reduce_max(t0, dims=(1,))
        t2: f32[4, 8] = broadcast(t1, shape=(4, 8), dims=(0,))
        t3: f32[4, 8] = sub(t0, t2)
        return t3
    """)
    assert kernels(g) == ["t0", "t1 t2 t3"]
    assert "needs whole rows" in verdict(g, "t0", "t1").reason
    assert "stored in any case" in verdict(g, "t0", "t3").reason


def test_a_norm_is_no_epilogue_even_where_it_starts_elementwise() -> None:
    g = fuse("""
    def f(x: f32[4, 8], w: f32[8, 8]) -> f32[4, 8]:
        t0: f32[4, 8] = contract(x, w, spec="ik,kj->ij")
        t1: f32[4, 8] = mul(t0, t0)
        t2: f32[4] = reduce_sum(t1, dims=(1,))
        t3: f32[4, 8] = broadcast(t2, shape=(4, 8), dims=(0,))
        t4: f32[4, 8] = div(t0, t3)
        return t4
    """)
    assert kernels(g) == ["t0", "t1 t2 t3 t4"]


@pytest.mark.parametrize(
    "copy", ["pad(x, low=(0, 1), high=(0, 1), value=0.0)", "concat(x, y, dim=1)"]
)
def test_conditional_loads_do_not_reach_a_contraction(copy: str) -> None:
    g = fuse(f"""
    def f(x: f32[4, 6], y: f32[4, 2], w: f32[8, 3]) -> f32[4, 3]:
        t0: f32[4, 6] = abs(x)
        t1: f32[4, 8] = {copy.replace("x", "t0")}
        t2: f32[4, 3] = contract(t1, w, spec="ik,kj->ij")
        return t2
    """)
    assert kernels(g) == ["t0 t1", "t2"]
    assert verdict(g, "t1", "t2").reason.startswith("a copy makes every load in bounds")


def test_convolution_and_pool() -> None:
    g = fuse("""
    def f(x: f32[1, 2, 6, 6], w: f32[3, 2, 3, 3]) -> f32[1, 3, 3, 3]:
        t0: f32[1, 2, 8, 8] = pad(x, low=(0, 0, 1, 1), high=(0, 0, 1, 1), value=0.0)
        t1: f32[1, 2, 6, 6, 3, 3] = window(t0, dims=(2, 3), sizes=(3, 3), strides=(1, 1), dilations=(1, 1))
        t2: f32[1, 3, 6, 6] = contract(t1, w, spec="ncyxhw,ochw->noyx")
        t3: f32[1, 3, 6, 6] = maximum(t2, 0.0)
        t4: f32[1, 3, 3, 3, 2, 2] = window(t3, dims=(2, 3), sizes=(2, 2), strides=(2, 2), dilations=(1, 1))
        t5: f32[1, 3, 3, 3] = reduce_max(t4, dims=(4, 5))
        t6: f32[1, 3, 3, 3] = neg(t5)
        return t6
    """)
    assert kernels(g) == ["t0", "t1 t2 t3", "t4 t5 t6"]


def test_heads_are_read_through_split_loops() -> None:
    """Attention heads are split and merged by views alone: no copies."""
    g = fuse("""
    def f(x: f32[2, 5, 12], w: f32[12, 12]) -> f32[2, 5, 12]:
        t0: f32[2, 5, 3, 4] = reshape(x, shape=(2, 5, 3, 4))
        t1: f32[2, 3, 5, 4] = permute(t0, dims=(0, 2, 1, 3))
        t2: f32[6, 5, 4] = reshape(t1, shape=(6, 5, 4))
        t3: f32[6, 5, 5] = contract(t2, t2, spec="bik,bjk->bij")
        t4: f32[6, 5, 4] = contract(t3, t2, spec="bij,bjk->bik")
        t5: f32[2, 3, 5, 4] = reshape(t4, shape=(2, 3, 5, 4))
        t6: f32[2, 5, 3, 4] = permute(t5, dims=(0, 2, 1, 3))
        t7: f32[2, 5, 12] = reshape(t6, shape=(2, 5, 12))
        t8: f32[2, 5, 12] = contract(t7, w, spec="bik,kj->bij")
        return t8
    """)
    assert kernels(g) == ["t0 t1 t2 t3", "t0_k1 t1_k1 t2_k1 t4", "t5 t6 t7 t8"]


def test_a_reshape_that_no_loops_fit_is_copied_before() -> None:
    g = fuse("""
    def f(x: f32[4, 6], w: f32[8, 2]) -> f32[3, 2]:
        t0: f32[6, 4] = permute(x, dims=(1, 0))
        t1: f32[3, 8] = reshape(t0, shape=(3, 8))
        t2: f32[3, 2] = contract(t1, w, spec="ik,kj->ij")
        return t2
    """)
    assert kernels(g) == ["t0 t1 t2"]  # 8 = 2 * 4: the loops split
    g = fuse("""
    def f(x: f32[4, 6], w: f32[3, 2]) -> f32[8, 2]:
        t0: f32[6, 4] = permute(x, dims=(1, 0))
        t1: f32[8, 3] = reshape(t0, shape=(8, 3))
        t2: f32[8, 2] = contract(t1, w, spec="ik,kj->ij")
        return t2
    """)
    assert kernels(g) == ["t0", "t1 t2"]
    assert verdict(g, "t0", "t2").reason.startswith("no loops fit the reshape behind it")


# ---------------------------------------------------------------------------------- others


def test_gather_takes_its_index_but_not_its_table() -> None:
    g = fuse("""
    def f(x: f32[5, 4], i: i64[3]) -> f32[3, 4]:
        t0: f32[5, 4] = exp(x)
        t1: i64[3] = minimum(i, 4)
        t2: f32[3, 4] = gather(t0, t1, dims=(0,))
        t3: f32[3, 4] = neg(t2)
        return t3
    """)
    assert kernels(g) == ["t0", "t1 t2 t3"]
    assert "reads it at computed places" in verdict(g, "t0", "t2").reason


def test_scans_and_scatters() -> None:
    g = fuse("""
    def f(x: f32[3, 4], i: i64[3]) -> f32[5, 4]:
        t0: f32[3, 4] = exp(x)
        t1: f32[3, 4] = scan_sum(t0, dim=1)
        t2: f32[3, 4] = neg(t1)
        t3: f32[5, 4] = full(shape=(5, 4), value=0.0, dtype=f32)
        t4: f32[5, 4] = scatter(t3, t2, i, dims=(0,), combine="add")
        t5: f32[5, 4] = abs(t4)
        return t5
    """)
    assert kernels(g) == ["t0 t1 t2", "t3 t4", "t5"]


def test_concat_chooses_among_cheap_producers_only() -> None:
    source = """
    def f(x: f32[4], y: f32[4]) -> f32[8]:
        t0: f32[4] = {}(x)
        t1: f32[8] = concat(t0, y, dim=0)
        t2: f32[8] = neg(t1)
        return t2
    """
    assert kernels(fuse(source.format("abs"))) == ["t0 t1 t2"]
    g = fuse(source.format("exp"))
    assert kernels(g) == ["t0", "t1 t2"]
    assert "under a condition" in verdict(g, "t0", "t2").reason


def test_externs_read_memory_and_keep_their_order() -> None:
    old = graph("""
    def f(x: f32[4]) -> (f32[4], f32[4], f32[4]):
        t0: f32[4] = exp(x)
        t1: f32[4] = aten.rand((4,))
        t2: f32[2, 2] = reshape(t0, shape=(2, 2))
        t3: f32[2, 2]; t4: i64[2, 2]; t3, t4 = aten.sort(t2)
        t5: f32[4] = reshape(t3, shape=(4,))
        t6: f32[4] = mul(t1, t5)
        t7: f32[4] = aten.rand((4,))
        return t6, t7, t0
    """)
    g, _ = PassManager.of("fuse").run(old)
    assert kernels(g) == ["t0 t2", "t5 t6"]
    assert [n.outs[0].name for n in g.nodes if n.is_extern] == ["t1", "t3", "t7"]
    assert verdict(g, "t2", "t3").reason == "aten.sort runs in PyTorch, on whole tensors"


def test_no_circles() -> None:
    """t3 may not join t0, since the contraction between them reads one and feeds the other."""
    g = fuse("""
    def f(x: f32[4, 4]) -> f32[4, 4]:
        t0: f32[4, 4] = exp(x)
        t1: f32[4, 4] = contract(t0, x, spec="ik,kj->ij")
        t2: f32[4, 4] = scan_sum(t1, dim=0)
        t3: f32[4, 4] = add(t0, t2)
        return t3
    """)
    group_of = {name: k.name for k in g.groups for name in k.nodes}
    assert group_of["t0"] != group_of["t3"]
    assert "lies between them" in verdict(g, "t0", "t3").reason


def test_limits() -> None:
    lines = [f"t{i}: f32[4] = exp({'x' if not i else f't{i - 1}'})" for i in range(20)]
    rows = "\n        ".join(lines)
    source = f"""
    def f(x: f32[4]) -> f32[4]:
        {rows}
        return t19
    """
    assert [len(k.nodes) for k in fuse(source, "{max_nodes=8}").groups] == [8, 8, 4]
    wide = """
    def f(a: f32[4], b: f32[4], c: f32[4], d: f32[4]) -> f32[4]:
        t0: f32[4] = add(a, b)
        t1: f32[4] = add(c, d)
        t2: f32[4] = add(t0, t1)
        return t2
    """
    g = fuse(wide, "{max_inputs=3}")
    assert len(g.groups) == 2 and "together 4 inputs; the limit is 3" in " ".join(
        v.reason for v in g.verdicts
    )


def test_bisection() -> None:
    g = graph(SOFTMAX.format(4, 8))
    new, records = PassManager.of("fuse", max_rewrites=1).run(g)
    assert len(new.groups) > 1 and records[0].refused > 0
    check_values(g, new)


def test_summary() -> None:
    _, records = PassManager.of("fuse").run(graph(SOFTMAX.format(4, 8)))
    assert records[0].sentence == "fuse put 7 nodes into 1 kernel: 5 edges fused, 0 kept apart"


def transformer(layers: int) -> Graph:
    x, w = Value("x", TensorType(f32, (64, 64))), Value("w", TensorType(f32, (64, 64)))
    with Builder("t") as b:
        h = wrap(x)
        for _ in range(layers):
            mean = L.broadcast(R.reduce_sum(h, dims=(1,)), shape=(64, 64), dims=(0,))
            n = E.exp(h - mean * 0.5)
            q = E.tanh(G.contract(n, wrap(w), spec="ik,kj->ij")) * 2.0 + 1.0
            h = h + G.contract(L.permute(q, dims=(1, 0)), wrap(w), spec="ik,kj->ij")
    return Graph("f", (x, w), (), tuple(b.nodes), (Output(h.value),))


def test_time_grows_linearly() -> None:
    """3,000 nodes take well under a second; here only the growth is checked, as machines differ."""

    def seconds(layers: int) -> float:
        g = transformer(layers)
        start = time.perf_counter()
        PassManager.of("fuse", verify=None).run(g)
        return time.perf_counter() - start

    seconds(10)
    small, large = min(seconds(30) for _ in range(3)), min(seconds(240) for _ in range(2))
    assert large < 8 * small * 4
