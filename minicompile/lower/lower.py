"""Graph with kernels -> Loop program: one function per kernel, still naive nests.

Each materialised value of a kernel gets its own nest (see `materialize`); results go to buffers of the
program, the others to private memory (`@ arena`), which `merge` then mostly removes.  Equal kernels
are kept once: a model with 12 equal layers has the kernels of one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from minicompile.ir.graph import Graph, Group, Node, Output, Value
from minicompile.ir.loop import (
    Alloc,
    Buffer,
    ExternCall,
    Kernel,
    KernelCall,
    Load,
    Param,
    Program,
    Stmt,
    Store,
)
from minicompile.ir.types import TensorType, contiguous_strides
from minicompile.lower.element import KernelScope
from minicompile.lower.equal import share_equal_kernels
from minicompile.lower.materialize import materialized
from minicompile.lower.nests import loop_nest, nest, space
from minicompile.ops.registry import PRIMITIVES
from minicompile.passes.base import Pass, register


@register
@dataclass(frozen=True)
class Lower(Pass):
    """Kernels become loops.

    before:  with k0: t0: f32[4, 8] = exp(x)
    after:   def k0(x: f32[4, 8], t0: f32[4, 8]):
                 for i0 in serial(4):
                     for i1 in serial(8):
                         t0[i0, i1] = exp(x[i0, i1])
    """

    name = "lower"
    requires = ("kernels",)
    ensures = ("loops",)

    def run(self, graph: Graph) -> Program:
        return ProgramBuilder(graph).build()


class ProgramBuilder:
    """Collects buffers, kernels and calls while walking the graph in order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.producers, self.users = graph.producers(), graph.users()
        self.buffers: dict[str, Buffer] = {}
        self.kernels: list[Kernel] = []
        self.calls: list[KernelCall | ExternCall] = []

    def build(self) -> Program:
        for v in self.graph.inputs:
            self.buffers[v.name] = Buffer(v.name, v.type, "input")
        for v in self.graph.params:
            self.buffers[v.name] = Buffer(v.name, v.type, "param")
        self.places = self._places()
        group_of = self.graph.group_of()
        done: set[str] = set()
        for node in self.graph.nodes:
            group = group_of.get(node.outs[0].name)
            if group is None:
                self._extern(node)
            elif group.name not in done:
                done.add(group.name)
                self._kernel(group)
        self._copies()
        buffers = tuple(self.buffers.values())
        program = Program(
            self.graph.name, tuple(self.kernels), buffers, tuple(self.calls), self.graph
        )
        return share_equal_kernels(program)

    # ------------------------------------------------------------------ where values live

    def _places(self) -> dict[str, tuple[str, TensorType]]:
        """(place, type) of each value that leaves its kernel: output before tensor before arena."""
        places: dict[str, tuple[str, TensorType]] = {}
        for node in self.graph.nodes:
            for v in node.outs:
                places[v.name] = ("tensor" if node.is_extern else "arena", v.type)
        for node in self.graph.nodes:
            if node.is_extern:
                for v in node.operands:
                    if v.name in places:
                        places[v.name] = ("tensor", v.type)
        for _, v in self.graph.writes:
            if v.name in places:
                places[v.name] = ("tensor", v.type)
        for out in self.graph.outputs:
            name = out.value.name
            if out.view is None and name in places and not self._extern_made(name):
                places[name] = (
                    "output",
                    replace(out.value.type, strides=_real_strides(out.value, out.strides)),
                )
        return places

    def _extern_made(self, name: str) -> bool:
        return name in self.producers and self.producers[name].is_extern

    def _extern(self, node: Node) -> None:
        for v in node.outs:
            self.buffers[v.name] = Buffer(v.name, v.type, "tensor")
        self.calls.append(ExternCall(node))

    # ------------------------------------------------------------------ one kernel

    def _kernel(self, group: Group) -> None:
        nodes = [self.producers[name] for name in group.nodes]
        inside = set(group.nodes)
        results = self._results(nodes, inside)
        stored = self._stored_as(
            results, inside
        )  # value with the nest -> result whose memory it fills
        order = materialized(nodes, set(stored))
        private = frozenset(name for name in order if name not in stored)
        memory = {name: b.type for name, b in self.buffers.items()}
        for name in order:
            v = self.producers[name].out
            result = stored.get(name)
            memory[name] = self.places[result][1] if result == name else v.type
        taken = {*order, *(v.name for v in self.graph.arguments)}
        scope = KernelScope(self.producers, memory, frozenset(order), taken=taken)
        body = [stmt for name in order for stmt in nest(scope, self.producers[name])]
        self._add(group.name, scope, body, stored, private)

    def _results(self, nodes: list[Node], inside: set[str]) -> list[str]:
        """Values of this kernel that are read outside of it."""
        kept = {v.name for v in self.graph.results}
        read = {
            n.out.name
            for n in nodes
            if any(user.outs[0].name not in inside for user in self.users[n.out.name])
        }
        return [n.out.name for n in nodes if n.out.name in kept | read]

    def _stored_as(self, results: list[str], inside: set[str]) -> dict[str, str]:
        """A result that only reshapes another value of the kernel: that value's nest fills the memory."""
        stored: dict[str, str] = {}
        for result in results:
            name = result
            _, type = self.places[result]
            while type.strides is None and PRIMITIVES[self.producers[name].op].row_major:
                source = self.producers[name].operands[0].name
                if source not in inside or source in results or source in stored:
                    break
                name = source
            stored[name] = result
        return stored

    def _add(
        self,
        name: str,
        scope: KernelScope,
        body: list[Stmt],
        stored: dict[str, str],
        private: frozenset[str],
    ) -> None:
        for value, result in stored.items():
            place, type = self.places[result]
            self.buffers[result] = Buffer(result, type, place)
            if value != result:
                self._alias(value, scope.memory[value], result)
        for view, base in scope.aliases.items():
            self._alias(view, scope.loads[view], base)
        reads = [
            Param(n, t) for n, t in scope.loads.items() if n not in private and n not in stored
        ]
        writes = [Param(n, scope.memory[n]) for n in stored]
        allocs = [
            Alloc(n, scope.memory[n], "arena", self.producers[n].origins)
            for n in sorted(private, key=list(scope.memory).index)
        ]
        self.kernels.append(Kernel(name, (*reads, *writes), len(writes), (*allocs, *body)))
        self.calls.append(KernelCall(name, tuple(p.name for p in (*reads, *writes))))

    def _alias(self, name: str, type: TensorType, base: str) -> None:
        while self.buffers[base].place == "alias":
            base = self.buffers[base].base
        self.buffers.setdefault(name, Buffer(name, type, "alias", base))

    # ------------------------------------------------------------------ outputs that are nobody's result

    def _copies(self) -> None:
        """An output that is an input or a parameter, or the same value as an earlier output, gets memory
        of its own, filled by a kernel that copies: no two results of a call share memory."""
        outputs: list[Output] = []
        given: set[str] = set()
        for n, out in enumerate(self.graph.outputs):
            strides = _real_strides(out.value, out.strides)
            have = self.buffers.get(out.value.name)
            if out.view is None and have is not None:
                if out.value.name in given or self._needs_copy(have, strides):
                    value = Value(f"{out.value.name}_out{n}", out.value.type)
                    self._copy(out.value, value, replace(out.value.type, strides=strides))
                    out = replace(out, value=value)
                given.add(out.value.name)
            outputs.append(out)
        self.graph = replace(self.graph, outputs=tuple(outputs))

    def _needs_copy(self, have: Buffer, strides: tuple[int, ...] | None) -> bool:
        if have.place in ("input", "param", "arena", "alias"):
            return True
        return have.place == "output" and have.type.strides != strides

    def _copy(self, source: Value, target: Value, type: TensorType) -> None:
        have = self.buffers[source.name]
        self.buffers[target.name] = Buffer(target.name, type, "output")
        loops, index = space(target.type.dims, {})
        value = Load(source.name, index, source.type.dtype)
        body = loop_nest(loops, [Store(target.name, index, value)])
        name = f"copy_{target.name}"
        params = (Param(source.name, have.type), Param(target.name, type))
        self.kernels.append(Kernel(name, params, 1, tuple(body)))
        self.calls.append(KernelCall(name, (source.name, target.name)))


def _real_strides(v: Value, strides: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """None when these strides are the contiguous ones anyway."""
    return None if strides is None or strides == contiguous_strides(v.type.dims) else strides
