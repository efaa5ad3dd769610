"""Who else reads a value: a value with other readers is stored in any case, so fusing saves less."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.ir.graph import Node
from minicompile.ops.registry import Kind, kind_of
from minicompile.passes.fuse_kernel import Kernel
from minicompile.passes.fuse_sources import Sources

EPILOGUE = (Kind.ELEMENTWISE, Kind.LAYOUT)  # what may follow a contraction in its kernel


@dataclass(frozen=True)
class Readers:
    """`kernel_of` maps every placed work node to its kernel."""

    sources: Sources
    kernel_of: dict[str, Kernel]

    def only_one(self, producer: Kernel, mine: Kernel, node: Node) -> str:
        for name in producer.names:
            if name in self.sources.must_exist:
                return "it is a result, so it is stored in any case"
            for link in self.sources.users.get(name, ()):
                user = link.consumer
                owner = self.kernel_of.get(user.outs[0].name) if user.outs else None
                if user is not node and owner is not producer and owner is not mine:
                    return f"{title(user)} reads it, too, so it is stored in any case"
        return ""

    def outside(self, name: str, producer: Kernel, node: Node) -> str:
        """A reader of the value that could not be in the epilogue, or ""."""
        if name in self.sources.must_exist:
            return "the caller"
        for link in self.sources.users.get(name, ()):
            user = link.consumer
            inside = bool(user.outs) and self.kernel_of.get(user.outs[0].name) is producer
            if user is not node and not inside and not self.fits_behind(user, name):
                return title(user)
        return ""

    def fits_behind(self, node: Node, name: str) -> bool:
        """Could `node` be computed in one pass with the value `name`, from that and from older values?"""
        todo, seen = [node], set[str]()
        while todo:
            one = todo.pop()
            if kind_of(one.op) not in EPILOGUE:
                return False
            for link in self.sources.links_of(one):
                if link.producer != name and not self.sources.depends(link.producer, name):
                    continue
                if link.relation.kind != "same":
                    return False
                if link.producer != name and link.producer not in seen:
                    seen.add(link.producer)
                    todo.append(self.sources.producers[link.producer])
        return True


def title(node: Node) -> str:
    return f"{node.outs[0].name} = {node.op}" if node.outs else node.op
