"""rewrite: matching, building, and what happens with bad rules."""

from __future__ import annotations

import pytest

from minicompile.ir.graph import Node
from minicompile.ops import elementwise as E
from minicompile.ops.build import wrap
from minicompile.passes.rewrite import Defs, Result, apply_rules, law, rule, same_number
from tests.passes.harness import body, graph

SOURCE = """
def f(x: f32[4], y: f32[4]) -> f32[4]:
    t0: f32[4] = mul(x, y)    # m.py:1
    t1: f32[4] = mul(x, 2.0)  # m.py:2
    t2: f32[4] = add(t0, t1)  # m.py:3
    return t2
"""


def test_nested_patterns_bind_names_and_unite_origins() -> None:
    distribute = law("distribute", "add(mul(x, y), mul(x, z)) -> mul(x, add(y, z))")
    new = apply_rules(graph(SOURCE), [distribute])
    assert [n.op for n in new.nodes] == ["mul", "mul", "add", "mul"]
    assert new.nodes[-1].out.name == "t2" and new.nodes[-2].out.name == "t2_0"
    assert [str(o.loc) for o in new.nodes[-1].origins] == ["m.py:1", "m.py:2", "m.py:3"]
    assert [str(o.loc) for o in new.nodes[-2].origins] == ["m.py:1", "m.py:2", "m.py:3"]


def test_repeated_names_must_agree() -> None:
    g = graph(SOURCE)
    assert apply_rules(g, [law("same", "add(x, x) -> mul(x, 2.0)")]) is g
    assert apply_rules(g, [law("one", "mul(x, 1) -> x")]) is g


def test_new_nodes_are_rewritten_too() -> None:
    @rule("mul(x, y) -> neg(neg(mul(x, y) + 0))", "mul")
    def widen(node: Node, defs: Defs) -> Result:
        return None if node.args[1] == 3.0 else E.neg(E.neg(wrap(node.args[0]) * 3.0))

    new = apply_rules(graph(SOURCE), [widen, law("neg_neg", "neg(neg(x)) -> x")])
    assert body(new)[1:-1] == [
        "t0_0: f32[4] = mul(x, 3.0)",
        "t0_1: f32[4] = neg(t0_0)",
        "t1_0: f32[4] = mul(x, 3.0)",
        "t1_1: f32[4] = neg(t1_0)",
        "t2: f32[4] = add(t0_0, t1_0)",
    ]


def test_rules_that_undo_each_other() -> None:
    rules = [law("there", "add(x, y) -> sub(x, y)"), law("back", "sub(x, y) -> add(x, y)")]
    with pytest.raises(RuntimeError, match="undo each other"):
        apply_rules(graph(SOURCE), rules)


def test_rules_keep_types() -> None:
    with pytest.raises(TypeError, match=r"rule wrong \(add\(x, y\) -> eq"):
        apply_rules(graph(SOURCE), [law("wrong", "add(x, y) -> eq(x, y)")])


def test_numbers() -> None:
    assert same_number(1, 1.0) and same_number(True, True) and same_number(-0.0, -0.0)
    assert not same_number(True, 1) and not same_number(0.0, -0.0) and not same_number("1", 1)
