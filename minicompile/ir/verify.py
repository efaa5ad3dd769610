"""The verifiers: every level has its rules, written down in the module that checks them.

    G1 ... G8    graphs     ir.verify_graph
    L1 ... L10   kernels    ir.verify_loop
    P1 ... P6    programs   ir.verify_program

All problems are reported at once, each under the line of IR that it is about.
"""

from __future__ import annotations

from minicompile.ir.graph import Graph
from minicompile.ir.loop import Kernel, Program
from minicompile.ir.problems import Problem, raise_if_any
from minicompile.ir.verify_graph import graph_problems
from minicompile.ir.verify_loop import kernel_problems
from minicompile.ir.verify_program import program_problems


def verify(ir: Graph | Program | Kernel) -> None:
    """CompileError MC021 with everything that is wrong with the IR; nothing if it is well-formed."""
    kind = type(ir).__name__.lower()
    raise_if_any(f"{kind} {ir.name}", problems(ir))


def problems(ir: Graph | Program | Kernel) -> list[Problem]:
    """Everything that is wrong with the IR."""
    if isinstance(ir, Graph):
        return graph_problems(ir)
    return program_problems(ir) if isinstance(ir, Program) else kernel_problems(ir)
