"""The manager: pipelines as text, hooks, limits, errors, properties, and passes of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from minicompile.errors import CompileError
from minicompile.ir.graph import Graph
from minicompile.ir.text import text
from minicompile.passes.changes import current
from minicompile.passes.manager import (
    PASSES,
    Hooks,
    Pass,
    PassManager,
    parse_pipeline,
    print_pipeline,
    register,
    unregister,
)
from tests.passes.harness import graph

SOURCE = """
def f(x: f32[4]) -> f32[4]:
    t0: f32[4] = exp(x)        # m.py:1
    t1: f32[4] = exp(x)        # m.py:2
    t2: f32[4] = mul(t0, 1.0)  # m.py:3
    t3: f32[4] = add(t2, t1)   # m.py:4
    return t3
"""


@pytest.fixture(autouse=True)
def only_known_passes() -> Iterator[None]:
    before = dict(PASSES)
    yield
    for name in set(PASSES) - set(before):
        unregister(name)


def message(call: object) -> str:
    assert callable(call)
    with pytest.raises(CompileError) as e:
        call()
    return str(e.value)


# ---------------------------------------------------------------------------------- text


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "cse",
        "decompose,fold,simplify,cse,dce,fuse",
        "fuse{max_inputs=8}",
        "dce,fuse{max_inputs=1,max_nodes=2},dce",
    ],
)
def test_text_round_trips(spec: str) -> None:
    assert print_pipeline(parse_pipeline(spec)) == spec


def test_spaces_and_defaults() -> None:
    assert (
        str(PassManager.of(" cse , fuse{max_inputs = 12, max_nodes=7} ")) == "cse,fuse{max_nodes=7}"
    )


def test_bad_text() -> None:
    assert "did you mean 'decompose'" in message(lambda: parse_pipeline("decompos"))
    assert "Valid: max_inputs, max_nodes" in message(lambda: parse_pipeline("fuse{inputs=8}"))
    assert "max_inputs of pass fuse is int" in message(
        lambda: parse_pipeline("fuse{max_inputs='8'}")
    )
    assert "(none)" in message(lambda: parse_pipeline("cse{x=1}"))
    assert "column 1" in message(lambda: parse_pipeline("cse dce"))
    assert "column 5" in message(lambda: parse_pipeline("cse,fuse{"))
    assert "by name" in message(lambda: parse_pipeline("fuse{8}"))
    assert "unknown pass 'xyz'" in message(lambda: PassManager.of("cse", disable=("xyz",)))


# ---------------------------------------------------------------------------------- running


def test_records() -> None:
    g = graph(SOURCE)
    new, records = PassManager.of("simplify,cse,dce", disable=("dce",)).run(g)
    assert [r.name for r in records] == ["simplify", "cse"]
    assert records[-1].ir is new and all(r.seconds >= 0 for r in records)
    assert records[0].counts == {"mul_one": 1}
    assert records[1].sentence == "cse merged 1 of 3 nodes: m.py:2"


def test_hooks() -> None:
    seen: list[str] = []
    hooks = Hooks(
        should_run=lambda step, ir: step.name != "cse",
        before=lambda step, ir: seen.append(f"before {step.name}"),
        after=lambda step, record: seen.append(f"after {record.name}"),
        on_rewrite=lambda step, rule, node: seen.append(f"{step.name}: {rule}"),
    )
    PassManager.of("simplify,cse,dce", hooks=hooks).run(graph(SOURCE))
    assert seen == [
        "before simplify",
        "simplify: mul_one",
        "after simplify",
        "before dce",
        "after dce",
    ]


def test_bisection_counts_over_all_passes() -> None:
    texts = []
    for limit in range(4):
        new, records = PassManager.of("simplify,cse", max_rewrites=limit).run(graph(SOURCE))
        texts.append(text(new))
        assert sum(len(r.subjects) for r in records) == min(limit, 2)
    assert len(set(texts)) == 3 and texts[2] == texts[3]
    assert records[0].refused == 0


def test_refused_rewrites_are_counted() -> None:
    _, records = PassManager.of("simplify,cse", max_rewrites=0).run(graph(SOURCE))
    assert [r.refused for r in records] == [1, 1]


def test_verify_after_each_pass_that_changed_something() -> None:
    seen: list[int] = []
    PassManager.of("simplify,fold,cse", verify=lambda ir: seen.append(len(ir.nodes))).run(
        graph(SOURCE)
    )
    assert seen == [3, 2]


# ---------------------------------------------------------------------------------- failures


@dataclass(frozen=True)
class Broken(Pass):
    """Fails on the third node.

    before: anything
    after:  nothing
    """

    name = "broken"
    node: int = 2

    def run(self, g: Graph) -> Graph:
        current().focus = g.nodes[self.node]
        raise ValueError("it broke")


def test_a_failing_pass_is_explained() -> None:
    seen: list[str] = []
    hooks = Hooks(on_error=lambda step, ir, e: seen.append(f"{step.name}: {e}"))
    manager = PassManager((Broken(),), hooks=hooks)
    got = message(lambda: manager.run(graph(SOURCE)))
    assert "MC030: pass broken failed: ValueError: it broke" in got
    assert "at m.py:3" in got and "t2: f32[4] = mul(t0, 1.0)" in got
    assert 'disable=("broken",)' in got and seen == ["broken: it broke"]


@dataclass(frozen=True)
class Lies(Pass):
    """Gives a graph without its nodes."""

    name = "lies"

    def run(self, g: Graph) -> Graph:
        return replace(g, nodes=())


def test_the_verifier_names_the_pass() -> None:
    got = message(lambda: PassManager((Lies(),)).run(graph(SOURCE)))
    assert "MC021" in got and "t3" in got


def test_properties() -> None:
    fused, _ = PassManager.of("fuse").run(graph(SOURCE))
    assert "cse requires `ungrouped`, but it already has kernels" in message(
        lambda: PassManager.of("cse").run(fused)
    )

    @dataclass(frozen=True)
    class Promises(Pass):
        name = "promises"
        ensures = ("kernels",)

        def run(self, g: Graph) -> Graph:
            return g

    got = message(lambda: PassManager((Promises(),)).run(graph(SOURCE)))
    assert "promises ensures `kernels`" in got
    inplace = graph("def f(x: f32[4]) -> f32[4]:\n    t0: f32[4] = aten.exp_(x)\n    return t0")
    assert "aten.exp_ mutates" in message(lambda: PassManager.of("decompose").run(inplace))


# ---------------------------------------------------------------------------------- user passes


@dataclass(frozen=True)
class Mine(Pass):
    """Renames the graph."""

    name = "mine"
    to: str = "renamed"

    def run(self, g: Graph) -> Graph:
        return replace(g, name=self.to)


def test_one_call_puts_a_pass_into_every_pipeline() -> None:
    register(Mine, after="cse")
    assert str(PassManager.of("simplify,cse,dce")) == "simplify,cse,mine,dce"
    assert str(PassManager.of("mine{to='x'},cse")) == "mine{to='x'},cse"
    new, _ = PassManager.of("cse,dce").run(graph(SOURCE))
    assert new.name == "renamed"
    assert str(PassManager.of("cse,dce", disable=("mine",))) == "cse,mine,dce"
    unregister("mine")
    assert str(PassManager.of("cse,dce")) == "cse,dce"


def test_incomplete_passes_are_refused() -> None:
    class Empty(Pass):
        name = "empty"

    assert "not a complete pass" in message(lambda: register(Empty))
    assert "unknown pass 'nowhere'" in message(lambda: register(Mine, after="nowhere"))
    assert "unknown pass 'nobody'" in message(lambda: unregister("nobody"))
