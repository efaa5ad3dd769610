"""fuse: which primitives share a kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

from minicompile.ir.graph import Graph, Group
from minicompile.passes.base import Pass, register


@register
@dataclass(frozen=True)
class Fuse(Pass):
    """One kernel for each primitive."""

    name = "fuse"
    requires = ("ungrouped",)
    ensures = ("kernels",)
    max_inputs: int = 12
    max_nodes: int = 80

    def run(self, graph: Graph) -> Graph:
        names = [n.out.name for n in graph.nodes if not n.is_extern]
        return replace(graph, groups=tuple(Group(f"k{i}", (n,)) for i, n in enumerate(names)))
