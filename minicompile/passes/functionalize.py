"""functionalize as a pass; the work is done in `capture.functionalize`, next to the views it undoes."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.capture.functionalize import Functionalize as Transform
from minicompile.ir.graph import Graph
from minicompile.passes.base import Pass, register
from minicompile.passes.changes import Changes
from minicompile.passes.effects import mutates


@register
@dataclass(frozen=True)
class Functionalize(Pass):
    """No node mutates a value any more; what was written to arguments is listed at the end.

    before:  t0: f32[4] = aten.add_.Tensor(x, 1)
             return t0
    after:   t0: f32[4] = aten.add.Tensor(x, 1)
             x[...] = t0
             return view(x, ...)
    """

    name = "functionalize"
    ensures = ("functional",)

    def run(self, graph: Graph) -> Graph:
        return Transform().run(graph)

    def summary(self, before: Graph, after: Graph, changes: Changes) -> str:
        """``functionalize made 3 of 40 nodes pure; 1 write to arguments stays``."""
        inplace = sum(mutates(n.op) for n in before.nodes)
        writes = len(after.writes)
        if not inplace:
            return "functionalize found nothing that mutates"
        sentence = f"functionalize made {inplace} of {len(before.nodes)} nodes pure"
        return sentence + (
            f"; written back: {', '.join(n for n, _ in after.writes)}" if writes else ""
        )
