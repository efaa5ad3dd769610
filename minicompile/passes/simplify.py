"""simplify: laws."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.ir.graph import Graph
from minicompile.passes.base import Pass, register


@register
@dataclass(frozen=True)
class Simplify(Pass):
    """Laws."""

    name = "simplify"

    def run(self, graph: Graph) -> Graph:
        return graph
