"""fuse: which primitives share a kernel, and why not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from minicompile.ir.graph import Graph, Node
from minicompile.ops.registry import Kind
from minicompile.passes.base import Pass, register
from minicompile.passes.changes import Changes, current
from minicompile.passes.effects import pure
from minicompile.passes.fuse_assemble import assemble
from minicompile.passes.fuse_kernel import Kernel, alone, merged
from minicompile.passes.fuse_rules import Limits, Rules
from minicompile.passes.fuse_sources import Link, Sources
from minicompile.passes.fuse_verdicts import verdicts


@register
@dataclass(frozen=True)
class Fuse(Pass):
    """Group the primitives into kernels, and give a verdict for every pair of producer and consumer.

    Nodes are reordered so that each kernel's are neighbours. Layouts and other free nodes that several
    kernels read are copied into each of them: t1 in the first, t1_k3 in kernel k3.

    before:  t0: f32[4, 8] = exp(x)
             t1: f32[4] = reduce_sum(t0, dims=(1,))
             t2: f32[4, 8] = broadcast(t1, shape=(4, 8), dims=(0,))
             t3: f32[4, 8] = div(t0, t2)
    after:   with k0: (the same four lines)                # rows of 8 stay in the kernel
    """

    name = "fuse"
    requires = ("ungrouped",)
    ensures = ("kernels",)
    max_inputs: int = 12
    max_nodes: int = 80

    def run(self, graph: Graph) -> Graph:
        sources = Sources(graph)
        fusion = Fusion(sources, Limits(self.max_inputs, self.max_nodes))
        for position, node in enumerate(graph.nodes):
            if not node.outs or node.outs[0].name not in sources.free:
                fusion.place(position, node)
        ordered = assemble(graph, sources, fusion.kernels)
        return replace(ordered, verdicts=verdicts(ordered, sources, fusion))

    def summary(self, before: Graph, after: Graph, changes: Changes) -> str:
        """``fuse put 31 nodes into 4 kernels: 27 edges fused, 3 kept apart``."""
        n = sum(len(g.nodes) for g in after.groups)
        fused = sum(v.fused for v in after.verdicts)
        apart = len(after.verdicts) - fused
        kernels = f"{len(after.groups)} kernel{'s' * (len(after.groups) != 1)}"
        return f"fuse put {n} nodes into {kernels}: {fused} edges fused, {apart} kept apart"


class Fusion:
    """Greedy, in graph order: each node starts a kernel, then its producers' kernels move in, if allowed."""

    def __init__(self, sources: Sources, limits: Limits) -> None:
        self.sources = sources
        self.changes = current()
        self.kernel_of: dict[str, Kernel] = {}
        self.rules = Rules(sources, self.kernel_of, limits)
        self.against: dict[tuple[str, str], str] = {}  # (producer, consumer) -> why they are apart
        self.effects: list[Kernel] = []  # Externs whose order counts

    @property
    def kernels(self) -> list[Kernel]:
        """All kernels (and Externs), by the position of their last node."""
        unique = {id(k): k for k in (*self.kernel_of.values(), *self.effects)}
        return sorted(unique.values(), key=lambda k: k.position)

    def place(self, position: int, node: Node) -> None:
        self.changes.focus = node
        links = self.sources.links_of(node)
        mine = alone(
            node, position, (link.producer for link in links), self.sources.free_below(node)
        )
        for link in links:
            self._comes_after(mine, self.kernel_of.get(link.producer))
        if not pure(node.op):
            self._comes_after(mine, self.effects[-1] if self.effects else None)
            self.effects.append(mine)
        self.kernel_of.update((v.name, mine) for v in node.outs)
        if not mine.external:
            self._gather(mine, node, links)

    def _comes_after(self, mine: Kernel, other: Kernel | None) -> None:
        if other is not None:
            mine.above |= other.above | other.bits

    def _gather(self, mine: Kernel, node: Node, links: list[Link]) -> None:
        """Let the kernels of the producers join, contractions first, then the latest."""
        done: set[int] = set()
        while True:
            open_ = [
                k for k in self._candidates(links) if k is not mine and k.bits & -k.bits not in done
            ]
            if not open_:
                return
            other = max(open_, key=lambda k: (k.anchor_kind is Kind.CONTRACTION, k.position))
            done.add(other.bits & -other.bits)
            between = [link for link in links if self.kernel_of.get(link.producer) is other]
            reason = self.rules.against(other, mine, node, between)
            if not reason and not self.changes.fire("fuse", node):
                reason = "the limit of rewrites is reached"
            for link in between:
                self.against[link.producer, node.outs[0].name] = reason
            if not reason:
                mine = self._join(other, mine, self.rules.inlines(other, mine, node, between))

    def _candidates(self, links: list[Link]) -> list[Kernel]:
        found = (self.kernel_of.get(link.producer) for link in links)
        return list({id(k): k for k in found if k is not None and not k.external}.values())

    def _join(self, producer: Kernel, consumer: Kernel, inlined: bool) -> Kernel:
        kernel = merged(producer, consumer, inlined)
        self.kernel_of.update((name, kernel) for name in kernel.names)
        below = [kernel]
        while below:  # whoever comes after one of its nodes now comes after all of them
            k = below.pop()
            for name in k.names:
                for link in self.sources.users.get(name, ()):
                    user = link.consumer.outs and self.kernel_of.get(link.consumer.outs[0].name)
                    if user and user is not k and (k.above | k.bits) & ~user.above:
                        user.above |= k.above | k.bits
                        below.append(user)
        return kernel
