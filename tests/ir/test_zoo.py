"""Every stage of every zoo model: its text round-trips, it is well-formed, and it computes the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils._pytree import tree_leaves

import minicompile
from minicompile.ir.graph import Graph
from minicompile.ir.loop import Program
from minicompile.ir.text import parse, plain, text
from minicompile.ir.verify import verify
from minicompile.tools import zoo


@pytest.mark.parametrize("name", zoo.names())
def test_every_stage(name: str) -> None:
    model, inputs = zoo.make(name)
    stages = minicompile.explain(model, *inputs, backend="interpreter")
    with torch.no_grad():
        want = tree_leaves(model(*inputs))
    for stage in stages.values():
        printed = text(stage.ir)
        again = parse(printed)
        assert text(again) == printed, stage.name
        assert plain(again) == kept(stage.ir), stage.name
        verify(again)
        for a, b in zip(tree_leaves(stage.run(*inputs)), want, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def kept(ir: Graph | Program) -> Graph | Program:
    """What the text holds: no columns in origins, and of a program's graph only the signature."""
    if isinstance(ir, Program):
        signature = replace(ir.graph, nodes=(), groups=(), verdicts=())
        ir = replace(ir, graph=signature)
    return plain(ir)
