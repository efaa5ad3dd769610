"""Graphs and programs for the tests of drawings, from text."""

from __future__ import annotations

from dataclasses import replace

import minicompile.ops  # noqa: F401  (fills the op table)
from minicompile.ir.graph import Graph, Group, Verdict
from minicompile.ir.location import Loc, Origin
from minicompile.ir.loop import Program
from minicompile.ir.text import parse

SOFTMAX = """
def softmax(x: f32[32, 10]) -> f32[32, 10]:
    t0_0: f32[32] = reduce_max(x, dims=(1,))                        # m.py:5
    t0_1: f32[32, 10] = broadcast(t0_0, shape=(32, 10), dims=(0,))  # m.py:5
    t0_2: f32[32, 10] = sub(x, t0_1)                                # m.py:5
    t0_3: f32[32, 10] = exp(t0_2)                                   # m.py:5
    t0_4: f32[32] = reduce_sum(t0_3, dims=(1,))                     # m.py:5
    t0_5: f32[32, 10] = broadcast(t0_4, shape=(32, 10), dims=(0,))  # m.py:5
    t0: f32[32, 10] = div(t0_3, t0_5)                               # m.py:5
    return t0
"""

PROGRAM = """
def k0(x: f32[4, 8], y: f32[4]) -> y:
    for i0 in parallel(4):
        acc: f32 @ register
        acc = 0.0
        for i1 in serial(8):
            acc += x[i0, i1]
        y[i0] = acc
"""


def graph(text: str) -> Graph:
    made = parse(text)
    assert isinstance(made, Graph)
    return made


def softmax() -> Graph:
    return graph(SOFTMAX)


def blocks(count: int, odd: int | None = None) -> Graph:
    """`count` equal blocks ``x = x + exp(x)`` in modules blocks.0, blocks.1, ...; block `odd` differs."""
    lines, previous = [], "x"
    for i in range(count):
        op = "log" if i == odd else "exp"
        lines.append(f"    a{i}: f32[8] = {op}({previous})  # m.py:3")
        lines.append(f"    b{i}: f32[8] = add({previous}, a{i})  # m.py:4")
        previous = f"b{i}"
    text = "\n".join(["def f(x: f32[8]) -> f32[8]:", *lines, f"    return {previous}"])
    made = graph(text)
    nodes = []
    for i, node in enumerate(made.nodes):
        place = Loc(
            "m.py", 3 + i % 2, module=f"blocks.{i // 2}", call="exp" if i % 2 == 0 else "add"
        )
        nodes.append(replace(node, origins=(Origin(place, node.out.name),)))
    return made.with_nodes(nodes)


def fused(reason: str = "the reduction needs whole rows: (32, 10) and (32,)") -> Graph:
    """softmax in two kernels, with one verdict against."""
    made = softmax()
    names = [n.out.name for n in made.nodes]
    groups = (Group("k0", tuple(names[:1])), Group("k1", tuple(names[1:])))
    return replace(made, groups=groups, verdicts=(Verdict("t0_0", "t0_2", False, reason),))


def planned(graph: Graph) -> Program:
    """The graph as a program with planned memory."""
    import minicompile.lower  # noqa: F401  (registers the passes)
    from minicompile.passes.manager import PassManager

    program, _ = PassManager.of("fuse,lower,merge,buffers").run(graph)
    assert isinstance(program, Program)
    return program
