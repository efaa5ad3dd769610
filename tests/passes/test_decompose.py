"""decompose: parts keep the parent's name and origin; what is not covered stays, with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from minicompile.errors import CompileError, NotNative
from minicompile.ops import elementwise as E
from minicompile.ops import reduction as R
from minicompile.ops.build import Handle
from minicompile.ops.registry import COMPOSITES, Composite
from minicompile.passes.manager import PassManager
from tests.passes.harness import check_pass, check_values, graph


@pytest.fixture
def registry() -> Iterator[dict[str, Composite]]:
    before = dict(COMPOSITES)
    yield COMPOSITES
    COMPOSITES.clear()
    COMPOSITES.update(before)


def test_parts_have_the_name_and_origin_of_the_op() -> None:
    before = """
    def f(x: f32[4, 8], b: f32[8]) -> f32[4, 8]:
        t0: f32[4, 8] = aten.add.Tensor(x, b)  # m.py:4
        return t0
    """
    after = """
    def f(x: f32[4, 8], b: f32[8]) -> f32[4, 8]:
        t0_0: f32[4, 8] = broadcast(b, shape=(4, 8), dims=(1,))  # m.py:4
        t0: f32[4, 8] = add(x, t0_0)                             # m.py:4
        return t0
    """
    new, records = check_pass("decompose", before, after)
    assert {o.value for n in new.nodes for o in n.origins} == {"t0"}
    assert records[0].sentence == "decompose expanded 1 of 1 nodes"


def test_keywords() -> None:
    g = graph("""
    def f(x: f32[4], y: f32[4]) -> f32[4]:
        t0: f32[4] = aten.add.Tensor(x, y, alpha=2)
        return t0
    """)
    new, _ = PassManager.of("decompose").run(g)
    check_values(g, new)


def test_identities_are_substituted() -> None:
    before = """
    def f(x: f32[4]) -> f32[4]:
        t0: f32[4] = aten.relu(x)   # m.py:1
        t1: f32[4] = aten.clone(t0) # m.py:2
        t2: f32[4] = aten.neg(t1)   # m.py:3
        return t2
    """
    g = graph(before)
    new, _ = PassManager.of("decompose").run(g)
    assert [n.out.name for n in new.nodes][-2:] == ["t0", "t2"]
    assert new.nodes[-1].operands[0].name == "t0"
    assert [str(o.loc) for o in new.nodes[-2].origins] == ["m.py:1", "m.py:2"]
    check_values(g, new)


def test_externs_say_why() -> None:
    source = """
    def f(x: f32[4]) -> f32[4]:
        t0: f32[4]; t1: i64[4]; t0, t1 = aten.sort(x)
        t2: f32[4] = aten.neg(t0)
        return t2
    """
    new, records = PassManager.of("decompose").run(graph(source))
    assert new.nodes[0].why == "extern: no entry in the registry"
    assert records[0].sentence == "decompose expanded 1 of 2 nodes; 1 stays Extern: aten.sort"


def test_names_that_are_taken() -> None:
    g = graph("""
    def f(t0_0: f32[4, 8], b: f32[8]) -> f32[4, 8]:
        t0: f32[4, 8] = aten.add.Tensor(t0_0, b)
        return t0
    """)
    new, _ = PassManager.of("decompose").run(g)
    assert [n.out.name for n in new.nodes] == ["t0_1", "t0"]


def entry(body: Any) -> Composite:
    return Composite(("aten.sort",), body, "")


SORT = """
def f(x: f32[4]) -> ({}):
    t0: f32[4]; t1: i64[4]; t0, t1 = aten.sort(x)  # m.py:7
    return {}
"""


def test_several_results_keep_their_names(registry: dict[str, Composite]) -> None:
    def body(x: Handle) -> tuple[Handle, Handle]:
        return E.neg(x), E.cast(E.exp(x), dtype=_i64())

    registry["aten.sort"] = entry(body)
    new, _ = PassManager.of("decompose").run(graph(SORT.format("f32[4], i64[4]", "t0, t1")))
    assert [n.out.name for n in new.nodes] == ["t0", "t0_1", "t1"]


def test_unread_results_are_dropped_unchecked(registry: dict[str, Composite]) -> None:
    registry["aten.sort"] = entry(lambda x: (None, E.cast(x, dtype=_i64())))
    new, _ = PassManager.of("decompose").run(graph(SORT.format("i64[4]", "t1")))
    assert [n.out.name for n in new.nodes] == ["t1"]


def test_both_results_may_be_one_value(registry: dict[str, Composite]) -> None:
    registry["aten.mul.Tensor"] = Composite(("aten.mul.Tensor",), lambda x, y: x, "")
    registry["aten.sort"] = entry(lambda x: (E.neg(x), E.neg(x)))
    source = """
    def f(x: f32[4]) -> f32[4]:
        t0: f32[4] = aten.mul.Tensor(x, x)
        t1: f32[4] = aten.neg(t0)
        return t1
    """
    new, _ = PassManager.of("decompose").run(graph(source))
    assert [n.out.name for n in new.nodes] == ["t1"] and new.nodes[0].operands[0].name == "x"


def test_not_native_stays_extern(registry: dict[str, Composite]) -> None:
    def body(x: Handle) -> tuple[Handle, Handle]:
        raise NotNative("sorting needs a network")

    registry["aten.sort"] = entry(body)
    new, _ = PassManager.of("decompose").run(graph(SORT.format("f32[4]", "t0")))
    assert new.nodes[0].why == "extern: sorting needs a network"


BUGS = {
    "wrong arguments": (lambda: (None, None), "positional argument"),
    "wrong type": (lambda x: (E.exp(x), E.exp(x)), "gives f32[4] for t1, but PyTorch gave i64[4]"),
    "wrong shape": (lambda x: (R.reduce_max(x, dims=(0,)), E.exp(x)), "gives f32 for t0"),
    "too few results": (lambda x: E.exp(x), "1 results, but PyTorch gives 2"),
    "type error inside": (lambda x: (R.reduce_max(x, dims=(5,)), x), "dims (5,)"),
}


@pytest.mark.parametrize("name", BUGS)
def test_bugs_of_the_registry_are_caught(name: str, registry: dict[str, Composite]) -> None:
    body, complaint = BUGS[name]
    registry["aten.sort"] = entry(body)
    with pytest.raises(CompileError) as e:
        PassManager.of("decompose").run(graph(SORT.format("f32[4], i64[4]", "t0, t1")))
    got = str(e.value)
    assert "MC030" in got and "aten.sort" in got and "m.py:7" in got and complaint in got


def test_bisection_leaves_ops_to_pytorch() -> None:
    g = graph("""
    def f(x: f32[4]) -> f32[4]:
        t0: f32[4] = aten.relu(x)
        t1: f32[4] = aten.neg(t0)
        return t1
    """)
    new, _ = PassManager.of("decompose", max_rewrites=1).run(g)
    assert new.nodes[-1].op == "aten.neg" and "limit" in new.nodes[-1].why
    check_values(g, new)


def _i64() -> Any:
    from minicompile.ir.types import i64

    return i64


@pytest.mark.parametrize(
    ("dtype", "number", "native"),
    [("f32", 1e39, False), ("f16", 1e6, False), ("f32", 1e38, True), ("f32", float("inf"), True)],
)
def test_numbers_beyond_the_range_are_left_to_pytorch(
    dtype: str, number: float, native: bool
) -> None:
    g = graph(f"""
    def f(x: {dtype}[4]) -> {dtype}[4]:
        t0: {dtype}[4] = aten.clamp(x, None, {number})
        return t0
    """)
    new, _ = PassManager.of("decompose").run(g)
    assert any(n.is_extern for n in new.nodes) != native
