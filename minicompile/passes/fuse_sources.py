"""What each computation really reads: layouts and constants are looked through.

Nodes have one of three roles in fusion:

    work      computes, and belongs to exactly one kernel
    free      costs nothing, or less than loading it: layouts, creations, masks made from creations, casts
              of parameters; every kernel that reads one gets its own copy
    external  an op of PyTorch

Layouts become work where they must exist in memory: results, arguments of Externs, padded or joined
operands of a contraction or window (a copy makes every load in bounds), and the input of a reshape that
no splitting of loops could follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from minicompile.ir.graph import Graph, Node, Value
from minicompile.ops.registry import PRIMITIVES, Kind, kind_of
from minicompile.passes.access import Relation, Step, access, is_free_of_index, relate

CHEAP = 4  # additions: what an element may cost to be computed again in each kernel
MANY = 8  # operands of a concat that are still chosen from inside a loop


@dataclass(frozen=True)
class Link:
    """`consumer` reads the value `producer` (as its operand number `slot`) through `steps`."""

    producer: str
    consumer: Node
    slot: int
    steps: tuple[Step, ...]
    relation: Relation


@dataclass
class Sources:
    """Roles of all nodes and the links between those that work."""

    graph: Graph
    producers: dict[str, Node] = field(init=False)
    copied: dict[str, str] = field(default_factory=dict)  # layouts that are work, and why
    links: dict[str, list[Link]] = field(default_factory=dict)  # by consumer
    users: dict[str, list[Link]] = field(default_factory=dict)  # by producer
    free: dict[str, int] = field(default_factory=dict)  # name of a free node -> its cost
    bit: dict[str, int] = field(default_factory=dict)
    above: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.producers = self.graph.producers()
        self.must_exist = {v.name for v in self.graph.results}
        for n in self.graph.nodes:
            if n.is_extern:
                self.must_exist |= {v.name for v in n.operands}
        self.params = {v.name for v in self.graph.params}
        self._copy_below_windows()
        while self._trace_all():
            pass
        self._number()

    # ------------------------------------------------------------------ roles

    def is_work(self, name: str) -> bool:
        node = self.producers.get(name)
        return node is not None and not node.is_extern and name not in self.free

    def _copy_below_windows(self) -> None:
        """Pads and concats that feed a contraction or a window; constants that feed a contraction."""
        for n in self.graph.nodes:
            if n.op == "window" or kind_of(n.op) is Kind.CONTRACTION:
                for v in n.operands:
                    self._copy_below(v, kind_of(n.op) is Kind.CONTRACTION)

    def _copy_below(self, v: Value, contraction: bool) -> None:
        node = self.producers.get(v.name)
        while node is not None and kind_of(node.op) is Kind.LAYOUT:
            if node.op in ("pad", "concat"):
                self.copied[node.out.name] = "a copy makes every load in bounds"
                return
            node = self.producers.get(node.operands[0].name)
        if node is not None and contraction and kind_of(node.op) is Kind.CREATION:
            self.copied[node.out.name] = "a contraction reads its operands from memory"

    def _cost_if_free(self, node: Node) -> int | None:
        """What one element costs where it is read, or None if this node is work."""
        name, kind = node.outs[0].name, kind_of(node.op)
        if kind is None or name in self.must_exist or name in self.copied:
            return None
        below = [self.free.get(v.name) for v in node.operands]
        if kind is Kind.CREATION:
            return 0
        if kind is Kind.LAYOUT:
            many = len(node.operands) > MANY
            return None if many else sum(c or 0 for c in below)
        if kind is not Kind.ELEMENTWISE:
            return None
        if node.op == "cast" and self._is_param(node.operands[0]):
            return PRIMITIVES[node.op].flops
        if any(c is None for c in below) or self._reads_memory(node):
            return None
        cost = sum(c or 0 for c in below) + PRIMITIVES[node.op].flops
        return cost if cost <= CHEAP else None

    def _is_param(self, v: Value) -> bool:
        while v.name in self.free and kind_of(self.producers[v.name].op) is Kind.LAYOUT:
            v = self.producers[v.name].operands[0]
        return v.name in self.params

    def _reads_memory(self, node: Node) -> bool:
        """Is anything but creations below this free node?"""
        stack = list(node.operands)
        while stack:
            v = stack.pop()
            if v.name not in self.free:
                return True
            stack.extend(self.producers[v.name].operands)
        return False

    # ------------------------------------------------------------------ links

    def _trace_all(self) -> bool:
        """Find all links; True if a layout had to become work, so that it must be done again."""
        self.links, self.users, self.free = {}, {}, {}
        before = len(self.copied)
        for node in self.graph.nodes:
            cost = self._cost_if_free(node) if node.outs else None
            if cost is not None:
                self.free[node.out.name] = cost
                continue
            found = list(self._trace(node))
            if node.outs:
                self.links[node.outs[0].name] = found
            for link in found:
                self.users.setdefault(link.producer, []).append(link)
        return len(self.copied) > before

    def depends(self, name: str, on: str) -> bool:
        """Is the value `on` among what `name` is computed from?"""
        return bool(self.above.get(name, 0) & self.bit.get(on, 0))

    def _number(self) -> None:
        """For each work node or Extern the set, as bits, of the values it is computed from."""
        self.bit, self.above = {}, {}
        for position, (name, links) in enumerate(self.links.items()):
            above = 0
            for link in links:
                above |= self.above.get(link.producer, 0) | self.bit.get(link.producer, 0)
            for v in self.producers[name].outs:
                self.bit[v.name], self.above[v.name] = 1 << position, above

    def links_of(self, node: Node) -> list[Link]:
        """Everything in memory that a work node or an Extern reads."""
        return self.links[node.outs[0].name] if node.outs else list(self._trace(node))

    def _trace(self, node: Node) -> Iterator[Link]:
        layout = kind_of(node.op) is Kind.LAYOUT
        for slot, v in enumerate(node.operands):
            space = node.out.type.dims if layout else v.type.dims if not node.is_extern else ()
            first = (Step(node, slot),) if layout else ()
            for source, steps in self._paths(v, first):
                if node.is_extern:
                    yield Link(source.name, node, slot, steps, Relation("same"))
                    continue
                self._copy_if_broken(space, steps)
                relation = relate(space, source.type.dims, steps)
                yield Link(source.name, node, slot, steps, relation)

    def _paths(self, v: Value, steps: tuple[Step, ...]) -> Iterator[tuple[Value, tuple[Step, ...]]]:
        """Every way from `v` through free nodes to a value in memory."""
        if v.name not in self.free:
            yield v, steps
            return
        node = self.producers[v.name]
        for k, operand in enumerate(node.operands):
            yield from self._paths(operand, (*steps, Step(node, k)))

    def free_below(self, node: Node) -> set[str]:
        """The free nodes that `node` reads, directly or through others."""
        found: set[str] = set()
        stack = [v.name for v in node.operands]
        while stack:
            name = stack.pop()
            if name in self.free and name not in found:
                found.add(name)
                stack.extend(v.name for v in self.producers[name].operands)
        return found

    def _copy_if_broken(self, space: tuple[int, ...], steps: tuple[Step, ...]) -> None:
        """A reshape of whole contiguous memory is free; of anything else, it needs that in memory."""
        if all(map(is_free_of_index, steps)) or 0 in space:
            return
        broken = access(space, steps).broken
        if broken is None or all(map(is_free_of_index, steps[broken:])):
            return
        inner = steps[broken].node.operands[0].name
        if inner in self.free:
            self.copied[inner] = f"no loops fit the {steps[broken].node.op} behind it"
