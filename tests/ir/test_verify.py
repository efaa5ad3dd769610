"""Every rule of the verifiers has an example that breaks it, and only it; good examples pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

import minicompile.ops  # noqa: F401  (fills the op table)
from minicompile.errors import CompileError
from minicompile.ir.graph import Graph, Node, Output, Value
from minicompile.ir.text import parse
from minicompile.ir.types import TensorType, f32
from minicompile.ir.verify import problems, verify


def rules(text: str) -> list[str]:
    return [p.rule for p in problems(parse(text))]


# ---------------------------------------------------------------------------------- graphs

GRAPH = """\
def f(x: f32[4], y: f32[4] @ strides(2), *, w: f32[4]) -> (f32[4], f32[2]):
    with k0:
        t0: f32[4] = add(x, 1.0)  # m.py:4
    t1: f32[4]; t2: i64[4]; t1, t2 = aten.sort(t0)  # m.py:5
    with k1:
        t3: f32[4] = sub(t1, w)  # made up
    w[...] = t0
    return strided(t3, (2,)), view(y, (2,), (4,), 0)
"""

BAD_GRAPHS = {
    "G1 twice": ("G1", "t2", "x"),
    "G1 reserved": ("G1", "t2", "torch"),
    "G3 inferred": ("G3", "t0: f32[4] = add(x, 1.0)", "t0: f32[4] = lt(x, 1.0)"),
    "G3 operands": ("G3", "add(x, 1.0)", "broadcast(x, shape=(3, 4), dims=(0,))"),
    "G3 attribute": ("G3", "add(x, 1.0)", "reshape(x)"),
    "G3 aten": ("G3", "aten.sort(t0)", "aten.no_such_op(t0)"),
    "G4": ("G4", "t3: f32[4] =", "t3: f32[4] @ strides(2) ="),
    "G5 strides": ("G5", "(2,)), view", "(2, 1)), view"),
    "G5 view": ("G5", "view(y, (2,), (4,), 0)", "view(t0, (2,), (2,), 0)"),
    "G5 lengths": ("G5", "view(y, (2,), (4,), 0)", "view(y, (2,), (4, 1), 0)"),
    "G6 type": ("G6", "w[...] = t0", "w[...] = t2"),
    "G6 input": ("G6", "w[...] = t0", "t1[...] = t0"),
    "G7 ungrouped": ("G7", "    with k1:\n        t3", "    t3"),
    "G7 extern": ("G7", "    t1: f32[4]; t2", "    with k2:\n      t1: f32[4]; t2"),
    "G7 cycle": ("G7", "with k1", "with k0"),
    "G8": ("G8", "  # m.py:4", ""),
}  # fmt: skip


def test_a_good_graph_passes() -> None:
    verify(parse(GRAPH))


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_bad_graphs(name: str) -> None:
    rule, *changes = BAD_GRAPHS[name]
    text = GRAPH
    for old, new in zip(changes[::2], changes[1::2]):
        assert old in text
        text = text.replace(old, new)
    assert rules(text) == [rule]


def test_values_defined_late_or_with_another_type() -> None:
    graph = parse(GRAPH)
    assert isinstance(graph, Graph)
    backwards = graph.with_nodes(reversed(graph.nodes))
    assert {p.rule for p in problems(backwards)} >= {"G2"}
    other = Value("x", TensorType(f32, (5,)))
    wrong = replace(graph, outputs=(Output(other),))
    assert [p.rule for p in problems(wrong)] == ["G2"]


def test_arguments_that_no_text_can_hold() -> None:
    graph = parse(GRAPH)
    assert isinstance(graph, Graph)
    first, *rest = graph.nodes
    strange = Node(first.op, (first.args[0], [1.0]), (), first.outs, first.origins)  # type: ignore[arg-type]
    assert [p.rule for p in problems(graph.with_nodes([strange, *rest]))] == ["G3"]


def test_all_problems_come_at_once_each_under_its_line() -> None:
    graph = parse(
        GRAPH.replace("t1, w", "t1, y").replace("  # m.py:4", "").replace("(2,)), v", "()), v")
    )
    with pytest.raises(CompileError) as e:
        verify(graph)
    assert e.value.code == "MC021" and "graph f is ill-formed: 2 problems" in e.value.message
    lines = e.value.context.splitlines()
    assert lines[0] == "t0: f32[4] = add(x, 1.0)" and lines[1].startswith("^ G8")
    assert lines[2].startswith("return strided") and lines[3].startswith("^ G5")


# ---------------------------------------------------------------------------------- kernels

KERNEL = """\
def k(x: f32[20, 16], ids: i64[20], y: f32[20, 16], n: i64[20]) -> (y, n):
    for i in parallel(20):
        j: i64 = ids[i]
        check(j, 20)
        acc: f32[16] @ register
        for v in vector(16):
            acc[v] = 0.0
        for k0 in serial(4):
            for v in vector(16):
                acc[v] += x[j, v] * 2.0
        for v in vector(16, active=10):
            s: f32 = acc[v]
            y[i, v] = s if 0 <= v - 1 < 9 else x[i, v + 1]
        n[i] = index(i * 2)
"""

BAD_KERNELS = {
    "L1 shadow": ("L1", "for k0", "for i"),
    "L1 buffer": ("L1", "s: f32 = acc[v]", "y: f32 = acc[v]", "s if", "y if"),
    "L1 reserved": ("L1", "s: f32", "inf: f32", "= s if", "= inf if"),
    "L3": ("L3", "x[j, v] * 2.0", "x[j] * 2.0"),
    "L4 range": ("L4", "x[j, v] * 2.0", "x[j, v + 1] * 2.0"),
    "L4 negative": ("L4", "x[i, v + 1]", "x[i, v - 1]"),
    "L4 unchecked": ("L4", "        check(j, 20)\n", ""),
    "L4 check": ("L4", "check(j, 20)", "check(j, 21)"),
    "L4 outside the condition": ("L4", "x[i, v + 1]", "x[i - 1, v]"),
    "L5 lanes": ("L5", "for v in vector(16, active=10)", "for v in vector(10)"),
    "L5 active": ("L5", "for k0 in serial(4)", "for k0 in serial(4, active=2)"),
    "L6": ("L6", "s: f32 = acc[v]", "s: f32 = acc[i % 16]"),
    "L7": ("L7", "n[i] = ", "n[0] = "),
    "L8 store": ("L8", "n[i] = index(i * 2)", "n[i] = cast(index(i * 2), f32)"),
    "L8 bind": ("L8", "s: f32 = acc[v]", "s: f32 = cast(acc[v], f64)"),
    "L9 input": ("L9", "-> (y, n)", "-> n"),
    "L9 unwritten": ("L9", "        n[i] = index(i * 2)\n", ""),
    "L10": ("L10", "            acc[v] = 0.0\n", "            pass\n"),
}


def test_a_good_kernel_passes() -> None:
    verify(parse(KERNEL))


@pytest.mark.parametrize("name", BAD_KERNELS)
def test_bad_kernels(name: str) -> None:
    rule, *changes = BAD_KERNELS[name]
    text = KERNEL
    for old, new in zip(changes[::2], changes[1::2]):
        assert old in text
        text = text.replace(old, new)
    assert rules(text) == [rule]


def test_a_condition_on_a_position_bounds_its_quotient() -> None:
    text = """\
def k(x: f32[8, 2], y: f32[18]) -> y:
    for i in serial(9):
        for j in serial(2):
            y[i * 2 + j] = x[i + (j + 1) // 2 - 1, (j + 1) % 2] if 0 <= i * 2 + j - 1 < 16 else 0.0
"""
    assert rules(text) == []
    assert rules(text.replace("< 16", "< 17")) == ["L4"]
    assert rules(text.replace("0 <= i", "-1 <= i")) == ["L4"]


def test_names_are_gone_behind_their_block() -> None:
    text = """\
def k(x: f32[4], y: f32[4]) -> y:
    for i in serial(4):
        s: f32 = x[i]
    for i in serial(4):
        y[i] = s
"""
    assert rules(text) == ["L2"]


DISJOINT = {
    "own element": ("y[p, i] = 1.0", True),
    "tile": ("y[p * 4 + i, 0] = 1.0", True),
    "tiles that overlap": ("y[p * 3 + i, 0] = 1.0", False),
    "another row": ("y[i, p] = 1.0", True),
    "the same": ("y[i, 0] = 1.0", False),
    "sum": ("y[0, 0] += 1.0", False),
    "quotient and remainder": ("y[p // 4, p % 4] = 1.0", True),
    "quotient only": ("y[p // 2, 0] = 1.0", False),
    "read of a neighbour": ("y[p, 0] = y[p + 1, 0]", False),
    "two halves": ("y[p * 2, 0] = 1.0\n            y[p * 2 + 1, 0] = 2.0", True),
}


@pytest.mark.parametrize("name", DISJOINT)
def test_parallel_loops_write_disjoint_elements(name: str) -> None:
    code, good = DISJOINT[name]
    width = 4 if "//" in code else 100
    text = f"def k(y: f32[100, {width}]) -> y:\n    for p in parallel(8):\n"
    text += f"        for i in serial(4):\n            {code}\n"
    assert rules(text) == ([] if good else ["L7"])


def test_shifted_tiles_may_overlap_because_they_store_the_same() -> None:
    text = """\
def k(x: f32[10], y: f32[10]) -> y:
    for i0 in parallel(3, step=4, last=6):
        for i1 in serial(4):
            y[i0 + i1] = x[i0 + i1]
"""
    assert rules(text) == []
    assert rules(text.replace("=6", "=7")) == ["L4", "L4"]
    assert rules(text.replace("= x[", "+= x[")) == ["L7"]


# ---------------------------------------------------------------------------------- programs

PROGRAM = """\
def k0(x: f32[4], y: f32[4]) -> y:
    for i in serial(4):
        y[i] = x[i]


def f(x: f32[4], *, w: f32[4]) -> f32[4]:
    arena: u8[128]
    t1: f32[4] @ arena(offset=0)
    t2: f32[4] @ arena(offset=64)
    v: f32[4] @ alias(t2)
    t3: f32[4] @ tensor
    t4: f32[4] @ output
    k0(x, t1)
    k0(t1, t2)
    t3: f32[4] = aten.sin(v)
    k0(t3, t4)
    w[...] = t2
    return t4
"""

BAD_PROGRAMS = {
    "P1 kernel": ("P1", "def k0", "def k0(x: f32[4]) -> ():\n    pass\n\n\ndef k0"),
    "P1 buffer": ("P1", "    t3: f32[4] @ tensor\n", "    t3: f32[4] @ tensor\n" * 2),
    "P2 type": ("P2", "t1: f32[4] @ arena(offset=0)", "t1: f32[2, 2] @ arena(offset=0)"),
    "P2 strides": ("P2", "t4: f32[4] @ output", "t4: f32[4] @ strides(2) @ output"),
    "P2 count": ("P2", "k0(t3, t4)\n", "k0(t3, t4)\n    k0(t3)\n"),
    "P3": ("P3", "    k0(x, t1)\n", ""),
    "P3 output": ("P3", "    k0(t3, t4)\n", ""),
    "P4 input": ("P4", "    k0(t3, t4)\n", "    k0(t3, t4)\n    k0(t3, w)\n"),
    "P4 aliasing": ("P4", "    k0(t3, t4)\n", "    k0(t3, t4)\n    k0(v, t2)\n"),
    "P5 outside": ("P5", "arena: u8[128]", "arena: u8[64]"),
    "P5 alignment": ("P5", "offset=64", "offset=8", "k0(t1, t2)", "k0(x, t2)"),
    "P5 overlap": ("P5", "offset=64", "offset=0"),
    "P6": ("L4", "x[i]", "x[i + 1]"),
}


def test_a_good_program_passes() -> None:
    verify(parse(PROGRAM))


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_bad_programs(name: str) -> None:
    rule, *changes = BAD_PROGRAMS[name]
    text = PROGRAM
    for old, new in zip(changes[::2], changes[1::2]):
        assert old in text
        text = text.replace(old, new)
    assert set(rules(text)) == {rule}
