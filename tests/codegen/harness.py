"""Running one kernel, given as Loop IR text: through the code generator, and by the interpreter."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache

import torch

import minicompile.ops  # noqa: F401  (fills the registry)
from minicompile.codegen.numba_cpu import generate
from minicompile.codegen.source import Source
from minicompile.ir.graph import Graph, Output, Value
from minicompile.ir.interpret import run_kernel
from minicompile.ir.loop import Buffer, Kernel, KernelCall, Program
from minicompile.ir.text import parse
from minicompile.runtime.build import build
from minicompile.runtime.executable import Executable


def kernel_of(text: str) -> Kernel:
    kernel = parse(text)
    assert isinstance(kernel, Kernel)
    return kernel


def program_of(kernel: Kernel) -> Program:
    """A program that calls the kernel once; what it reads are inputs, what it writes are outputs."""
    written = {p.name for p in kernel.written}
    reads = [p for p in kernel.params if p.name not in written]
    buffers = [
        Buffer(p.name, p.type, "output" if p.name in written else "input") for p in kernel.params
    ]
    outputs = tuple(Output(Value(p.name, p.type.pure()), p.type.strides) for p in kernel.written)
    graph = Graph("program", tuple(Value(p.name, p.type) for p in reads), (), (), outputs)
    names = tuple(p.name for p in kernel.params)
    return Program("program", (kernel,), tuple(buffers), (KernelCall(kernel.name, names),), graph)


@cache
def folder() -> str:
    return tempfile.mkdtemp(prefix="minicompile-test-")


def compiled(program: Program) -> Executable:
    return Executable(program, build(generate(program), folder(), use_cache=False))


def source_of(text: str) -> Source:
    return generate(program_of(kernel_of(text)))


def run(kernel: Kernel, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The outputs, by name, of the generated code. Buffers are zero before."""
    program = program_of(kernel)
    executable = compiled(program)
    ordered = [inputs[v.name] for v in program.graph.inputs]
    return dict(zip((p.name for p in kernel.written), executable(ordered, [])))


def interpreted(kernel: Kernel, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    outputs = {
        p.name: torch.empty_strided(p.type.dims, p.type.dense_strides, dtype=p.type.dtype.torch)
        for p in kernel.written
    }
    run_kernel(kernel, {**inputs, **outputs})
    return outputs


def check(text: str, *tensors: torch.Tensor, exact: bool = False) -> dict[str, torch.Tensor]:
    """The generated code and the interpreter agree on a kernel; returns the outputs."""
    kernel = kernel_of(text)
    inputs = dict(zip((p.name for p in kernel.params), tensors))
    got, want = run(kernel, inputs), interpreted(kernel, inputs)
    for name in got:
        if exact:
            assert torch.equal(got[name], want[name]), f"{name}: {got[name]} {want[name]}"
        else:
            torch.testing.assert_close(got[name], want[name], equal_nan=True)
    return got
