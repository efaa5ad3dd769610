"""Properties that passes require and ensure: each is a check that returns "" or what is wrong.

functional   graph: nothing is mutated in place
primitive    graph: every op is a primitive, or an Extern that says why it is one
kernels      graph: every primitive is in exactly one kernel; kernels are contiguous
ungrouped    graph: no kernels yet
loops        a loop program
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicompile.errors import CompileError, unknown_name
from minicompile.ir.graph import Graph
from minicompile.ir.loop import Program
from minicompile.ops.registry import PRIMITIVES
from minicompile.passes.effects import mutates

Property = Callable[[Any], str]


def _functional(ir: Any) -> str:
    if not isinstance(ir, Graph):
        return "it is not a graph"
    bad = [n.op for n in ir.nodes if mutates(n.op)]
    return f"{bad[0]} mutates its arguments" if bad else ""


def _primitive(ir: Any) -> str:
    if not isinstance(ir, Graph):
        return "it is not a graph"
    for n in ir.nodes:
        if n.op not in PRIMITIVES and not n.why:
            return f"{n.op} is neither a primitive nor an Extern with a reason"
    return ""


def _ungrouped(ir: Any) -> str:
    if not isinstance(ir, Graph):
        return "it is not a graph"
    return f"it already has kernels ({ir.groups[0].name}, ...)" if ir.groups else ""


def _kernels(ir: Any) -> str:
    if not isinstance(ir, Graph):
        return "it is not a graph"
    inside = [name for g in ir.groups for name in g.nodes]
    if len(set(inside)) != len(inside):
        return "a node is in two kernels"
    order = [n.out.name for n in ir.nodes if not n.is_extern]
    if order != inside:
        lost = sorted(set(order) ^ set(inside))
        return f"kernels and nodes differ: {', '.join(lost[:4]) or 'another order'}"
    return ""


def _loops(ir: Any) -> str:
    return "" if isinstance(ir, Program) else "it is not a loop program"


PROPERTIES: dict[str, Property] = {
    "functional": _functional,
    "primitive": _primitive,
    "ungrouped": _ungrouped,
    "kernels": _kernels,
    "loops": _loops,
}


def check(ir: Any, names: tuple[str, ...], who: str) -> None:
    """CompileError MC030 unless `ir` has all these properties; `who` is ``fuse requires``."""
    for name in names:
        if name not in PROPERTIES:
            raise unknown_name("property", name, sorted(PROPERTIES))
        complaint = PROPERTIES[name](ir)
        if complaint:
            raise CompileError("MC030", f"{who} `{name}`, but {complaint}")
