"""The rules of a well-formed program.

P1  names of kernels are unique, and so are those of buffers; inputs and parameters come first,
    as in the signature
P2  a call names a kernel and known buffers, one for each parameter and of its type (dtype,
    shape, strides); the operands and results of an Extern are buffers
P3  a buffer is written before it is read; outputs and write-backs are, too
P4  no call writes an input or parameter, and no buffer that the same call also reads
P5  arena buffers with offsets lie inside the arena, aligned to 64 bytes, and two of them that hold
    something at the same time do not overlap
P6  every kernel is well-formed (rules L1 ... L10 of ir.verify_loop)
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from minicompile.ir.loop import Buffer, ExternCall, Kernel, KernelCall, Program
from minicompile.ir.problems import Problem, bad_name
from minicompile.ir.types import TensorType
from minicompile.ir.verify_loop import kernel_problems

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


def program_problems(program: Program) -> list[Problem]:
    """Everything that is wrong with the program, its kernels first."""
    problems = [
        Problem(p.rule, f"{p.message} (kernel {k.name})", p.text, p.where)
        for k in program.kernels
        for p in kernel_problems(k)
    ]
    check = _Check(program)
    check.names()
    for number, call in enumerate(program.calls):
        check.call(number, call)
    check.results()
    check.arena()
    return problems + check.problems


class _Check:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.problems: list[Problem] = []
        self.buffers = {b.name: b for b in program.buffers}
        self.kernels = {k.name: k for k in program.kernels}
        self.first: dict[str, int] = {}  # memory -> number of the first call that writes it
        self.last: dict[str, int] = {}  # memory -> number of the last call that touches it

    def add(self, rule: str, message: str, text: str = "") -> None:
        self.problems.append(Problem(rule, message, text))

    def memory(self, name: str) -> Buffer | None:
        """The buffer whose memory this is: aliases are followed."""
        b = self.buffers.get(name)
        for _ in self.buffers:
            if b is None or b.place != "alias":
                break
            b = self.buffers.get(b.base)
        return b

    def names(self) -> None:
        for what, names in (
            ("kernel", [k.name for k in self.program.kernels]),
            ("buffer", [b.name for b in self.program.buffers]),
        ):
            for name, n in Counter(names).items():
                if n > 1:
                    self.add("P1", f"there are {n} of {what} {name}")
                if bad := bad_name(name):
                    self.add("P1", bad)
        graph = self.program.graph
        given = [(v.name, v.type, "input") for v in graph.inputs]
        given += [(v.name, v.type, "param") for v in graph.params]
        first = [(b.name, b.type, b.place) for b in self.program.buffers[: len(given)]]
        if first != given:
            self.add("P1", "the first buffers are not those of the signature")
        for b in self.program.buffers:
            if self.memory(b.name) is None:
                self.add("P2", f"{b.name} is an alias of {b.base}, which is no buffer")

    # ------------------------------------------------------------------------------ calls

    def call(self, number: int, call: KernelCall | ExternCall) -> None:
        if isinstance(call, ExternCall):
            node = call.node
            text = f"{', '.join(v.name for v in node.outs)} = {node.op}(...)"
            self.read(number, [v.name for v in node.operands], text)
            self.write(number, [v.name for v in node.outs], text)
            return
        text = f"{call.kernel}({', '.join(call.buffers)})"
        kernel = self.kernels.get(call.kernel)
        if kernel is None:
            self.add("P2", f"there is no kernel {call.kernel}", text)
            return
        if len(call.buffers) != len(kernel.params):
            message = f"{kernel.name} takes {len(kernel.params)} buffers, not {len(call.buffers)}"
            self.add("P2", message, text)
            return
        self.types(kernel, call, text)
        inputs = len(kernel.params) - kernel.outputs
        self.read(number, list(call.buffers[:inputs]), text)
        self.write(number, list(call.buffers[inputs:]), text)
        self.aliasing(call, inputs, text)

    def types(self, kernel: Kernel, call: KernelCall, text: str) -> None:
        for p, name in zip(kernel.params, call.buffers):
            b = self.buffers.get(name)
            if b is not None and _layout(b.type) != _layout(p.type):
                self.add("P2", f"{name} is {b.type}, the parameter {p.name} {p.type}", text)

    def aliasing(self, call: KernelCall, inputs: int, text: str) -> None:
        read = {m.name for b in call.buffers[:inputs] if (m := self.memory(b)) is not None}
        written = [m.name for b in call.buffers[inputs:] if (m := self.memory(b)) is not None]
        for name, n in Counter(written).items():
            if name in read or n > 1:
                self.add("P4", f"the call writes {name}, and uses it in another place, too", text)

    def read(self, number: int, names: list[str], text: str) -> None:
        for name in names:
            b = self.memory(name)
            if b is None:
                self.add("P2", f"{name} is no buffer", text)
            elif b.place not in ("input", "param") and b.name not in self.first:
                self.add("P3", f"{name} is read before it is written", text)
            else:
                self.last[b.name] = number

    def write(self, number: int, names: list[str], text: str) -> None:
        for name in names:
            b = self.memory(name)
            if b is None:
                self.add("P2", f"{name} is no buffer", text)
            elif b.place in ("input", "param"):
                self.add("P4", f"{name} is an {b.place}; only write-backs may change it", text)
            else:
                self.first.setdefault(b.name, number)
                self.last[b.name] = number

    # ------------------------------------------------------------------------------ the whole

    def results(self) -> None:
        graph, end = self.program.graph, len(self.program.calls)
        values = [o.value for o in graph.outputs] + [v for _, v in graph.writes]
        self.read(end, [v.name for v in values], f"return {', '.join(v.name for v in values)}")

    def arena(self) -> None:
        planned = [b for b in self.program.buffers if b.offset is not None]
        for b in planned:
            start = b.offset or 0
            if start % ALIGNMENT or start < 0 or start + b.type.bytes > self.program.arena_bytes:
                text = f"{b.name}: {b.type} @ {b.place}(offset={b.offset})"
                self.add("P5", f"not aligned, or outside of {self.program.arena_bytes} bytes", text)
        for a, b in combinations(planned, 2):
            if self.alive_together(a, b) and _overlap(a, b):
                self.add("P5", f"{a.name} and {b.name} share memory, and are alive together")

    def alive_together(self, a: Buffer, b: Buffer) -> bool:
        if a.name not in self.first or b.name not in self.first:
            return False
        first = max(self.first[a.name], self.first[b.name])
        return first <= min(self.last[a.name], self.last[b.name])


def _overlap(a: Buffer, b: Buffer) -> bool:
    x, y = a.offset or 0, b.offset or 0
    return x < y + b.type.bytes and y < x + a.type.bytes


def _layout(t: TensorType) -> tuple[object, ...]:
    """What a kernel relies on; strides of axes of size 1 or of empty tensors do not matter."""
    steps = tuple(s for n, s in zip(t.dims, t.dense_strides) if n > 1)
    return t.dtype, t.dims, steps if t.numel else ()
