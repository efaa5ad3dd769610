"""The reference interpreters: what every IR means, run without generating any code.

`run` gives the outputs; `run_graph`, `run_kernel` and `run_program` give everything by name.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minicompile.ir.graph import Graph
from minicompile.ir.interpret_graph import (
    graph_outputs,
    run_graph,
    run_graph_outputs,
    widened,
    write_back,
)
from minicompile.ir.interpret_loop import run_kernel
from minicompile.ir.interpret_program import run_program, run_program_outputs
from minicompile.ir.loop import Program

__all__ = [
    "graph_outputs",
    "run",
    "run_graph",
    "run_kernel",
    "run_program",
    "widened",
    "write_back",
]


def run(ir: Graph | Program, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs, in order, for these inputs and then parameters.

    Strides of outputs, views of inputs and mutations of inputs are those of the model: pass clones
    of inputs that must not change.  IndexError where an index is out of range.
    """
    with torch.no_grad():
        if isinstance(ir, Graph):
            return run_graph_outputs(ir, inputs)
        return run_program_outputs(ir, inputs)
