"""The verdict on every pair of producer and consumer, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from minicompile.ir.graph import Graph, Node, Verdict
from minicompile.ops.registry import Kind, kind_of
from minicompile.passes.fuse_kernel import Kernel, describe
from minicompile.passes.fuse_sources import Link, Sources


class Decided(Protocol):
    """What fusion knows at the end."""

    kernel_of: dict[str, Kernel]
    against: dict[tuple[str, str], str]


def verdicts(graph: Graph, sources: Sources, decided: Decided) -> tuple[Verdict, ...]:
    """One verdict for each edge between nodes that compute, in the order of the (fused) graph."""
    out: dict[tuple[str, str], Verdict] = {}
    group_of = graph.group_of()
    inside: dict[str, dict[str, Node]] = {}  # kernel -> its free nodes
    for node in graph.nodes:
        if not node.outs:
            continue
        name = node.outs[0].name
        free = inside.setdefault(group_of[name].name if name in group_of else "", {})
        if kind_of(node.op) is not Kind.LAYOUT or name in decided.kernel_of:
            for v in (*_work_edges(node, sources, decided), *_free_edges(node, free)):
                out.setdefault((v.producer, v.consumer), v)
        if name not in decided.kernel_of:
            free[name] = node
    return tuple(out.values())


def _work_edges(node: Node, sources: Sources, decided: Decided) -> Iterator[Verdict]:
    name = node.outs[0].name
    for link in sources.links.get(name, ()):
        producer = sources.producers.get(link.producer)
        if producer is None:
            continue
        kernel = decided.kernel_of[name]
        if producer.is_extern or node.is_extern:
            op = producer.op if producer.is_extern else node.op
            yield Verdict(link.producer, name, False, f"{op} runs in PyTorch, on whole tensors")
        elif decided.kernel_of[link.producer] is kernel:
            yield Verdict(link.producer, name, True, together(producer, node, link, kernel))
        else:
            why = decided.against.get((link.producer, name), "the loops differ")
            spaces = f"{_space(producer, decided)}; {_space(node, decided)}"
            yield Verdict(link.producer, name, False, f"{why}: {spaces}")


def _space(node: Node, decided: Decided) -> str:
    """The loops that a node runs in: those of the contraction in its kernel, if there is one."""
    kernel = decided.kernel_of[node.outs[0].name]
    return describe(
        kernel.anchor if kernel.anchor_kind is Kind.CONTRACTION and kernel.anchor else node
    )


def together(producer: Node, node: Node, link: Link, kernel: Kernel) -> str:
    """Why it is good that these two share a kernel."""
    kind, space = link.relation.kind, producer.outs[0].type.dims
    if kind == "row":
        return f"rows of {kernel.row} stay in the kernel"
    if kind != "same":
        return "computed where it is read"
    if kind_of(node.op) is Kind.REDUCTION:
        return f"reduced as it is computed, over {space}"
    if kernel.anchor_kind is Kind.CONTRACTION:
        return "epilogue: applied while the contraction's result is in registers"
    return f"one pass over {space}"


def _free_edges(node: Node, inside: dict[str, Node]) -> Iterator[Verdict]:
    """Masks and casts that are computed again in each kernel; `inside`: the free nodes of this one."""
    for v in node.operands:
        name = v.name
        while name in inside and kind_of(inside[name].op) is Kind.LAYOUT:
            name = inside[name].operands[0].name
        if name in inside and kind_of(inside[name].op) is Kind.ELEMENTWISE:
            yield Verdict(name, node.outs[0].name, True, "cheaper to compute again than to load")
