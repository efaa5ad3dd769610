"""The host: one readable function that calls the kernels in order, so that a forward is one native call.

A program is cut into segments where it calls PyTorch (ExternCall).  A host function takes the
addresses of the tensors it touches, the table of the parameters' addresses, the address of the scratch
memory, and the number of threads:

    def mlp(x: f32[8, 784], t4: f32[8, 10], table: int, arena: int, threads: int):
        fc1_weight = address(table, 0)  # f32[512, 784]
        t1 = arena + 0  # f32[8, 512]
        parallel(threads, 8, k0, x, fc1_weight, t1)  # k0(x, fc1_weight, t1, 0, 8) on one thread
        k1(t1, t4)
        return 0

It returns 0, or the number of the bounds check that failed.  `host_compiler` compiles it.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.codegen.source import (
    CodeWriter,
    KernelSource,
    Namespace,
    Segment,
    annotation,
)
from minicompile.ir.loop import Buffer, KernelCall, Program

ALIGN = 64
ERROR_BYTES = ALIGN  # the cell for a failed check has a cache line of its own


@dataclass(frozen=True)
class ArenaLayout:
    """Byte offsets into the arena: planned buffers, the error cell, private memory of each thread."""

    error: int
    scratch: int
    bytes: int


def arena_layout(
    program: Program, scratch_bytes: int, checked: bool, threads: int = 1
) -> ArenaLayout:
    """`scratch_bytes` is what one thread needs; every thread gets its own."""
    error = -(-program.arena_bytes // ALIGN) * ALIGN
    scratch = error + (ERROR_BYTES if checked else 0)
    return ArenaLayout(error, scratch, scratch + scratch_bytes * threads)


def print_hosts(
    program: Program, kernels: list[KernelSource], writer: CodeWriter, checked: bool
) -> list[Segment]:
    """Print a host function for each run of kernel calls."""
    runs = kernel_runs(program)
    taken = Namespace({k.name for k in kernels})
    segments = []
    for n, run in enumerate(runs):
        name = taken.fresh(program.name if len(runs) == 1 else f"{program.name}_{n}")
        segments.append(_Host(program, kernels, writer, checked).print(name, run))
        if n + 1 < len(runs):
            writer.line("", why="space")
            writer.line("", why="space")
    return segments


def kernel_runs(program: Program) -> list[list[KernelCall]]:
    """The kernel calls between calls of PyTorch, in order; no empty runs."""
    runs: list[list[KernelCall]] = [[]]
    for call in program.calls:
        if isinstance(call, KernelCall):
            runs[-1].append(call)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


class _Host:
    def __init__(
        self, program: Program, kernels: list[KernelSource], writer: CodeWriter, checked: bool
    ) -> None:
        self.program, self.writer, self.checked = program, writer, checked
        self.kernels = {k.name: k for k in kernels}
        self.buffers = {b.name: b for b in program.buffers}
        self.scratch_bytes = max((k.scratch_bytes for k in kernels), default=0)
        self.layout = arena_layout(program, self.scratch_bytes, checked)
        self.param_numbers = {v.name: n for n, v in enumerate(program.graph.params)}
        self.named: set[str] = set()

    def print(self, name: str, run: list[KernelCall]) -> Segment:
        used = {self._root(b) for call in run for b in call.buffers}
        tensors = tuple(
            b.name
            for b in self.program.buffers
            if b.name in used and b.place in ("input", "output", "tensor")
        )
        names = Namespace(set(self.buffers) | set(self.kernels))
        self.table, self.arena = names.fresh("table"), names.fresh("arena")
        self.scratch, self.error = names.fresh("scratch"), names.fresh("error")
        self.threads = names.fresh("threads")
        params = [annotation(t, self.buffers[t].type) for t in tensors]
        params += [f"{name}: int" for name in (self.table, self.arena, self.threads)]
        first = len(self.writer.lines) + 1
        self.writer.line("@host", why="the host")
        self.writer.signature(name, params, "tensors, table of parameters, scratch memory, threads")
        self.named = set(tensors)
        with self.writer.block():
            self._prologue(run)
            for call in run:
                self._call(call)
            self.writer.line(
                f"return failed({self.error})" if self.checked else "return 0", why="the result"
            )
        return Segment(name, tensors, first, len(self.writer.lines))

    def _root(self, name: str) -> str:
        buffer = self.buffers[name]
        return self._root(buffer.base) if buffer.place == "alias" else name

    def _prologue(self, run: list[KernelCall]) -> None:
        if any("scratch" in self.kernels[c.kernel].extra for c in run):
            at = f"{self.arena} + {self.layout.scratch}"
            self.writer.line(f"{self.scratch} = {at}", why="private memory of the kernels")
        if self.checked:
            at = f"{self.arena} + {self.layout.error}"
            self.writer.line(f"{self.error} = error_cell({at})", why="the failed check, 0 if none")

    def _call(self, call: KernelCall) -> None:
        for name in call.buffers:
            self._name(self.buffers[name])
        kernel = self.kernels[call.kernel]
        scratch = self.scratch
        if kernel.extent is not None:  # every thread has private memory of its own
            scratch = f"each({scratch}, {self.scratch_bytes})"
        values = {"scratch": scratch, "error": self.error}
        args = ", ".join((*call.buffers, *(values[e] for e in kernel.extra if e in values)))
        text = f"{call.kernel}({args})"
        if kernel.extent is not None:
            text = f"parallel({self.threads}, {kernel.extent}, {call.kernel}, {args})"
        self.writer.line(text, why=f"call of {call.kernel}")

    def _name(self, buffer: Buffer) -> None:
        """Give the address of a buffer its name, at its first use."""
        if buffer.name in self.named:
            return
        self.named.add(buffer.name)
        if buffer.place == "alias":
            self._name(self.buffers[buffer.base])
            value = buffer.base + (f" + {buffer.offset}" if buffer.offset else "")
        elif buffer.place == "param":
            value = f"address({self.table}, {self.param_numbers[buffer.name]})"
        else:
            value = f"{self.arena} + {buffer.offset or 0}"
        self.writer.line(f"{buffer.name} = {value}  # {buffer.type}", why="where a buffer lies")
