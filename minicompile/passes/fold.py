"""fold: what does not depend on any input is computed now."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.ir.graph import Graph
from minicompile.passes.base import Pass, register


@register
@dataclass(frozen=True)
class Fold(Pass):
    """Constants."""

    name = "fold"

    def run(self, graph: Graph) -> Graph:
        return graph
