"""dce: dead code goes."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.ir.graph import Graph, Node
from minicompile.passes.base import Pass, register
from minicompile.passes.changes import current
from minicompile.passes.effects import removable


@register
@dataclass(frozen=True)
class Dce(Pass):
    """Nodes whose results nobody reads are dropped, from the last to the first.

    Kept although unread: Externs with effects, and random ones, since they advance the generator.

    before:  t0: f32[4] = exp(x)
             t1: f32[4] = neg(x)
             return t1
    after:   t1: f32[4] = neg(x)
             return t1
    """

    name = "dce"
    verb = "dropped"
    requires = ("ungrouped",)

    def run(self, graph: Graph) -> Graph:
        changes = current()
        live = {o.value.name for o in graph.outputs} | {v.name for _, v in graph.writes}
        kept: list[Node] = []
        for node in reversed(graph.nodes):
            changes.focus = node
            read = any(v.name in live for v in node.outs)
            if read or not removable(node) or not changes.fire("dce", node):
                kept.append(node)
                live.update(v.name for v in node.operands)
        if len(kept) == len(graph.nodes):
            return graph
        return graph.with_nodes(reversed(kept))
