"""The rules of fusion: why a consumer may, or may not, move into the kernel of a producer.

Each rule returns "" or the reason against it, in words.  A kernel costs one write and one read of every
value between two kernels; what the rules weigh against that is work done again and again, loops that do not
fit together, and the register tiles of contractions.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.ir.graph import Node
from minicompile.ops.registry import Kind, kind_of
from minicompile.passes.fuse_kernel import Kernel, products, same_space
from minicompile.passes.fuse_readers import EPILOGUE, Readers, title
from minicompile.passes.fuse_sources import CHEAP, Link, Sources

ROW_LIMIT = 1 << 16  # elements: a longer row has left the L2 cache before it is read again
EPILOGUE_COST = 8  # additions an unrelated producer may add to a contraction's epilogue


@dataclass(frozen=True)
class Limits:
    max_inputs: int
    max_nodes: int


@dataclass
class Rules:
    """`kernel_of` maps every placed work node to its kernel; `outside` are the Externs."""

    sources: Sources
    kernel_of: dict[str, Kernel]
    limits: Limits

    @property
    def readers(self) -> Readers:
        return Readers(self.sources, self.kernel_of)

    def against(self, producer: Kernel, mine: Kernel, node: Node, links: list[Link]) -> str:
        """Why the kernel `mine`, which `node` is in, must stay apart from `producer`; "" to fuse."""
        return (
            self.shape(producer, mine, node, links)
            or self.size(producer, mine)
            or self.cycle(producer, mine)
        )

    def inlines(self, producer: Kernel, mine: Kernel, node: Node, links: list[Link]) -> bool:
        """Is the producer computed in the consumer's order, rather than both in one pass?"""
        if kind_of(node.op) in (Kind.GATHER, Kind.SCATTER, Kind.SCAN) or (
            kind_of(node.op) is Kind.REDUCTION and not mine.row
        ):
            return True
        return any(link.relation.kind not in IN_ORDER for link in links) or (
            not producer.row and any(link.relation.kind == "row" for link in links)
        )

    # ------------------------------------------------------------------ do the loops fit?

    def shape(self, producer: Kernel, mine: Kernel, node: Node, links: list[Link]) -> str:
        """`links` are those from `producer` to `node`."""
        kinds = {link.relation.kind for link in links}
        if kind_of(node.op) is Kind.CONTRACTION:
            return self.prologue(producer, node, links)
        if producer.anchor_kind is Kind.SCATTER:
            return "a scatter is complete only after its last element"
        if kind_of(node.op) is Kind.GATHER and any(link.slot == 0 for link in links):
            return "the gather reads it at computed places"
        if kind_of(node.op) is Kind.SCATTER or (kind_of(node.op) is Kind.GATHER):
            return self.inline(producer, mine, node, links)
        if kinds == {"same"}:
            return self.one_pass(producer, mine, node, links)
        if kinds <= {"same", "row"} and producer.row:
            return self.rows(producer, mine, links)
        return self.inline(producer, mine, node, links)

    def prologue(self, producer: Kernel, node: Node, links: list[Link]) -> str:
        if producer.anchor_kind is Kind.CONTRACTION:
            return "two contractions never share a kernel"
        read = links[0]
        if read.producer in self.sources.copied:
            return self.sources.copied[read.producer]
        size = self.sources.producers[read.producer].outs[0].type.numel
        times = products(node) // max(size, 1)
        return f"each element would be computed {times} times"

    def one_pass(self, producer: Kernel, mine: Kernel, node: Node, links: list[Link]) -> str:
        """Producer and consumer run over the same points."""
        if producer.anchor_kind is Kind.CONTRACTION:
            return self.epilogue(producer, mine, node, links)
        if mine.anchor_kind is Kind.CONTRACTION:
            return self.joins_epilogue(producer, mine, node)
        if producer.anchor is not None and mine.anchor is not None:
            return "each has loops of its own"
        if producer.anchor is not None and (kind_of(node.op) is Kind.REDUCTION or mine.row):
            return "the reduction needs whole rows of it"
        if kind_of(node.op) is Kind.SCAN or (node is mine.anchor and not producer.row):
            return self.inline(producer, mine, node, links)
        if not same_space(producer, mine):
            if producer.row and mine.row:
                return f"rows of {producer.row} and rows of {mine.row}"
            return "the loops differ"
        return ""

    def epilogue(self, producer: Kernel, mine: Kernel, node: Node, links: list[Link]) -> str:
        """Elementwise work on a contraction's results while they are in registers."""
        if mine.anchor_kind is Kind.CONTRACTION:
            return "two contractions never share a kernel"
        if mine.row or kind_of(node.op) is Kind.REDUCTION:
            return "the reduction needs whole rows of it"
        if mine.anchor is not None or not same_space(producer, mine):
            return "the loops differ"
        if kind_of(node.op) not in EPILOGUE:
            return "only elementwise work fits behind a contraction"
        for link in links:
            reader = self.readers.outside(link.producer, producer, node)
            if reader:
                return f"{reader} reads it, too, so it is stored in any case"
        return ""

    def joins_epilogue(self, producer: Kernel, mine: Kernel, node: Node) -> str:
        """May a second producer of `node` be computed in the contraction's epilogue, too?"""
        if producer.row or not same_space(producer, mine):
            return "the loops differ"
        if producer.cost > EPILOGUE_COST:
            return f"{producer.cost} additions are too much for the contraction's epilogue"
        return self.readers.only_one(producer, mine, node)

    def rows(self, producer: Kernel, mine: Kernel, links: list[Link]) -> str:
        """One value per row meets the elements of that row."""
        if producer.row > ROW_LIMIT:
            return f"a row of {producer.row} leaves the cache before it is read again"
        for link in links:
            size = self.sources.producers[link.producer].outs[0].type.numel
            per_row = size * producer.row == producer.points
            if link.relation.kind == "row" and not (
                per_row and link.relation.factor == producer.row
            ):
                return "it repeats along other axes than the row"
        if not same_space(producer, mine):
            return (
                f"rows of {producer.row} and rows of {mine.row}" if mine.row else "the loops differ"
            )
        return ""

    def inline(self, producer: Kernel, mine: Kernel, node: Node, links: list[Link]) -> str:
        """The producer is computed in place, in the order in which the consumer reads it."""
        copied = [link.producer for link in links if link.producer in self.sources.copied]
        if copied:
            return self.sources.copied[copied[0]]
        if producer.anchor is not None or producer.row:
            return _ORDER.get(max(links, key=_rank).relation.kind, "the loops differ")
        worst = max(links, key=_rank).relation
        if worst.kind == "broken":
            return "no loops fit the reshape between them"
        cheap = producer.cost <= CHEAP
        if worst.kind == "choose" and not cheap:
            return "it would be computed under a condition"
        if worst.factor > 1 and not cheap:
            return f"each element would be computed {worst.factor:g} times"
        return self.readers.only_one(producer, mine, node)

    # ------------------------------------------------------------------ is it allowed at all?

    def size(self, a: Kernel, b: Kernel) -> str:
        nodes = len(a.nodes) + len(b.nodes) + len(a.free | b.free)
        if nodes > self.limits.max_nodes:
            return f"together {nodes} nodes; the limit is {self.limits.max_nodes}"
        inputs = len((a.reads | b.reads).difference(a.names, b.names))
        if inputs > self.limits.max_inputs:
            return f"together {inputs} inputs; the limit is {self.limits.max_inputs}"
        return ""

    def cycle(self, a: Kernel, b: Kernel) -> str:
        """Is there a way from one to the other through a third kernel?"""
        for first, last in ((a, b), (b, a)):
            for name in last.reads:
                middle = self.kernel_of.get(name)
                if middle is None or middle is a or middle is b:
                    continue
                if middle.above & first.bits:
                    return f"{title(middle.nodes[-1])} lies between them"
        return ""


_ORDER = {
    "moved": "it is read in another order",
    "part": "only a part of it is read",
    "repeated": "each element is read several times",
    "choose": "it is read under a condition",
    "row": "it repeats along the row",
    "broken": "no loops fit the reshape between them",
}
IN_ORDER = ("same", "row")  # the producer's own loops serve the consumer, too
_RANKS = ("same", "row", "part", "moved", "repeated", "choose", "broken")


def _rank(link: Link) -> int:
    return _RANKS.index(link.relation.kind)
