"""The reference interpreter of programs: allocate the buffers, then run the calls in order.

Arena buffers with planned offsets share one block of memory, exactly as in the compiled program, so that
an overlap of two live buffers gives wrong numbers here, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minicompile.ir.combine import poisoned
from minicompile.ir.interpret_graph import graph_outputs
from minicompile.ir.interpret_loop import run_kernel
from minicompile.ir.loop import Buffer, ExternCall, Program
from minicompile.ir.torch_call import call_node


def run_program(program: Program, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """All buffers by name after the calls. `inputs` are the program's inputs, then its parameters.

    Outputs and write-backs are left to the caller (see `run_program_outputs`).
    """
    env = {v.name: t for v, t in zip(program.graph.arguments, inputs, strict=True)}
    arena = torch.full((program.arena_bytes,), 0xFF, dtype=torch.uint8)  # NaN in every float dtype
    for buffer in program.buffers:
        if buffer.name not in env and buffer.place in ("arena", "output", "tensor"):
            env[buffer.name] = _allocated(buffer, arena)
    for buffer in program.buffers:
        _alias(buffer, env)
    kernels = {k.name: k for k in program.kernels}
    for call in program.calls:
        if isinstance(call, ExternCall):
            results = zip(call.node.outs, call_node(call.node, env), strict=True)
            env.update({out.name: result.contiguous() for out, result in results})
            for buffer in program.buffers:
                _alias(buffer, env)
        else:
            kernel = kernels[call.kernel]
            names = zip(kernel.params, call.buffers, strict=True)
            run_kernel(kernel, {p.name: env[b] for p, b in names})
    return env


def run_program_outputs(program: Program, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs in order, with eager's strides; mutates inputs as the model does."""
    env = run_program(program, inputs)
    return graph_outputs(program.graph, env)


def _allocated(b: Buffer, arena: torch.Tensor) -> torch.Tensor:
    if b.offset is not None:
        flat = arena[b.offset : b.offset + b.type.bytes].view(b.type.dtype.torch)
        return flat.as_strided(b.type.dims, b.type.dense_strides, flat.storage_offset())
    dense = poisoned((max(_span(b), 1),), b.type.dtype)
    return dense.as_strided(b.type.dims, b.type.dense_strides)


def _span(b: Buffer) -> int:
    """Elements from the first to the last one, gaps included."""
    return 1 + sum((n - 1) * s for n, s in zip(b.type.dims, b.type.dense_strides) if n)


def _alias(b: Buffer, env: dict[str, torch.Tensor]) -> None:
    """An alias is the memory of its base seen with another type; its base may be a later result."""
    if b.place == "alias" and b.base in env:
        base = env[b.base]
        offset = base.storage_offset()
        if base.dtype is b.type.dtype.torch:
            env[b.name] = base.as_strided(b.type.dims, b.type.dense_strides, offset)
        else:
            env[b.name] = base.reshape(-1).view(b.type.dtype.torch).reshape(b.type.dims)
