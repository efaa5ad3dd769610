"""Graphs written as text, for the tests of lower, merge and buffers."""

from __future__ import annotations

from dataclasses import replace

import torch

import minicompile.lower  # registers the passes
from minicompile.ir.graph import Graph, Group, Node
from minicompile.ir.interpret import run
from minicompile.ir.loop import Program
from minicompile.ir.text import parse, text
from minicompile.ir.verify import verify
from minicompile.lower.lower import Lower
from minicompile.lower.merge import Merge

SOFTMAX = """
def softmax(x: f32[4, 8]) -> f32[4, 8]:
    with k0:
        t0: f32[4] = reduce_max(x, dims=(1,))
        t1: f32[4, 8] = broadcast(t0, shape=(4, 8), dims=(0,))
        t2: f32[4, 8] = sub(x, t1)
        t3: f32[4, 8] = exp(t2)
        t4: f32[4] = reduce_sum(t3, dims=(1,))
        t5: f32[4, 8] = broadcast(t4, shape=(4, 8), dims=(0,))
        t6: f32[4, 8] = div(t3, t5)
    return t6
"""

LINEAR = """
def linear(x: f32[4, 8], w: f32[6, 8], b: f32[6]) -> f32[4, 6]:
    with k0:
        t0: f32[4, 6] = contract(x, w, spec="ik,jk->ij")
        t1: f32[4, 6] = broadcast(b, shape=(4, 6), dims=(1,))
        t2: f32[4, 6] = add(t0, t1)
        t3: f32[4, 6] = maximum(t2, 0.0)
    return t3
"""


def graph(source: str) -> Graph:
    """The graph of this text; nodes need no user lines here, they get a reason instead."""
    g = parse(source)
    assert isinstance(g, Graph)
    return g.with_nodes(n if n.origins else replace(n, why="test") for n in g.nodes)


def one_kernel(source: str) -> Graph:
    """The graph with all its primitives in kernel k0."""
    g = graph(source)
    names = tuple(n.out.name for n in g.nodes if not n.is_extern)
    return replace(g, groups=(Group("k0", names),))


def arguments(g: Graph, low: int = 0, high: int = 3) -> list[torch.Tensor]:
    """Random inputs: floats in [-1, 1), integers in [low, high), with the strides of the graph."""
    out = []
    for v in g.arguments:
        t = torch.empty_strided(v.type.dims, v.type.dense_strides, dtype=v.type.dtype.torch)
        if v.type.dtype.is_float:
            out.append(t.copy_(torch.rand(v.type.dims) * 2 - 1))
        else:
            out.append(t.copy_(torch.randint(low, high, v.type.dims)))
    return out


def lowered(source: str, merge: bool = True) -> Program:
    """The loop program; checked by the verifier, and by running it beside the graph."""
    g = graph(source) if "with k" in source else one_kernel(source)
    program = Lower().run(g)
    if merge:
        program = Merge().run(program)
    verify(program)
    inputs = arguments(g)
    for got, want, out in zip(run(program, inputs), run(g, inputs), g.outputs, strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)
        assert out.strides in (None, got.stride())
    return program


def kernel_text(program: Program, n: int = 0) -> str:
    """Kernel n as text, without comments."""
    rows = text(program.kernels[n]).splitlines()
    return "\n".join(row.split("#")[0].rstrip() for row in rows)


def nodes_of(g: Graph) -> list[Node]:
    return list(g.nodes)


__all__ = ["LINEAR", "SOFTMAX", "arguments", "graph", "kernel_text", "lowered", "minicompile"]
