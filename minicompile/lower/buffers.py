"""Memory planning: where every intermediate of the program lives in one scratch arena.

A buffer is alive from the call that writes it first to the last call that reads it.  Buffers that are
never alive at the same time may share bytes.  The planner is greedy by size (largest first, lowest free
offset), as in TensorFlow Lite (Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net
Inference", 2020): on these graphs it is within a few percent of the largest live set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from minicompile.ir.loop import Alloc, Buffer, ExternCall, Kernel, KernelCall, Param, Program
from minicompile.passes.base import Pass, register

ALIGN = 64  # bytes: one cache line, and one AVX-512 register


@register
@dataclass(frozen=True)
class Buffers(Pass):
    """Give every arena buffer an offset; private buffers of kernels become parameters first.

    before:  t1: f32[64, 64] @ arena        after:  t1: f32[64, 64] @ arena(offset=16384)
    """

    name = "buffers"
    level = "loop"
    requires = ("loops",)
    reuse: bool = True

    def run(self, program: Program) -> Program:
        program = hoist_private(program)
        offsets, total = plan(program, self.reuse)
        buffers = tuple(
            replace(b, offset=offsets[b.name]) if b.place == "arena" else b for b in program.buffers
        )
        return replace(program, buffers=buffers, arena_bytes=total)


def hoist_private(program: Program) -> Program:
    """Kernel-private `@ arena` memory becomes a parameter, with one program buffer for each call."""
    private: dict[str, tuple[Param, ...]] = {}
    kernels: list[Kernel] = []
    for k in program.kernels:
        allocs = [s for s in k.body if isinstance(s, Alloc) and s.memory == "arena"]
        private[k.name] = tuple(Param(a.buf, a.type) for a in allocs)
        body = tuple(s for s in k.body if s not in allocs)
        params = (*k.params, *private[k.name])
        kernels.append(replace(k, params=params, outputs=k.outputs + len(allocs), body=body))
    buffers, calls = list(program.buffers), list[KernelCall | ExternCall]()
    taken = {b.name for b in buffers}
    for n, call in enumerate(program.calls):
        if isinstance(call, KernelCall):
            for p in private[call.kernel]:
                name = p.name if p.name not in taken else f"{p.name}_call{n}"
                taken.add(name)
                buffers.append(Buffer(name, p.type, "arena"))
                call = replace(call, buffers=(*call.buffers, name))
        calls.append(call)
    return replace(program, kernels=tuple(kernels), buffers=tuple(buffers), calls=tuple(calls))


def lifetimes(program: Program) -> dict[str, tuple[int, int]]:
    """Arena buffer -> (first call, last call) that touches it; an alias counts for its base."""
    base = {b.name: b.base or b.name for b in program.buffers}
    life: dict[str, tuple[int, int]] = {}
    for n, call in enumerate(program.calls):
        if isinstance(call, KernelCall):
            names: tuple[str, ...] = call.buffers
        else:
            names = tuple(v.name for v in (*call.node.operands, *call.node.outs))
        for name in names:
            b = base[name]
            life[b] = (life[b][0] if b in life else n, n)
    return {b.name: life[b.name] for b in program.buffers if b.place == "arena" and b.name in life}


def plan(program: Program, reuse: bool = True) -> tuple[dict[str, int], int]:
    """Offsets in bytes of the arena buffers, and the size of the arena."""
    life = lifetimes(program)
    sizes = {b.name: b.type.bytes for b in program.buffers if b.place == "arena"}
    order = sorted(sizes, key=lambda name: -sizes[name])
    offsets: dict[str, int] = {}
    for name in order:
        first, last = life.get(name, (0, 0))
        busy = sorted(
            (offsets[o], offsets[o] + sizes[o])
            for o in offsets
            if not reuse or (life[o][0] <= last and first <= life[o][1])
        )
        at = 0
        for start, end in busy:
            if at + sizes[name] <= start:
                break
            at = max(at, _aligned(end))
        offsets[name] = at
    total = max((offsets[n] + sizes[n] for n in order), default=0)
    return offsets, _aligned(total)


def _aligned(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
