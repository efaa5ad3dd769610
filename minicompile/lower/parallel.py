"""parallel: the outermost loop of a kernel, where there is enough to do for several cores."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.ir.loop import Alloc, For, Kernel, Program
from minicompile.lower.analysis import carried, work
from minicompile.lower.kernels import each_kernel
from minicompile.lower.transforms import mark
from minicompile.passes.base import Pass, register


@register
@dataclass(frozen=True)
class Parallel(Pass):
    """The outermost loop of each kernel that is worth it runs on all threads.

    before:  for i0 in serial(1024): ...
    after:   for i0 in parallel(1024): ...

    Iterations must be independent (each writes a slab of its own).  A kernel of less than `least`
    microseconds stays serial: waking the other threads and waiting for them costs more than it gains
    (t2 = t1/2 + 1.2 us was measured for two threads, so 4 us break even with some margin).
    """

    name = "parallel"
    level = "loop"
    verb = "parallelised"
    least: float = 4.0  # microseconds, as estimated by analysis.work

    def run(self, program: Program) -> Program:
        return each_kernel(program, lambda k: (parallel(k, self.least), "all threads"))


def parallel(k: Kernel, least: float) -> Kernel:
    loop = outermost(k)
    if loop is None or loop.extent < 2 or carried(loop) or work(k).microseconds < least:
        return k
    return mark(k, loop.var, "parallel")


def outermost(k: Kernel) -> For | None:
    """The one loop that a kernel consists of, beside its declarations of memory; None if it has more."""
    rest = [s for s in k.body if not (isinstance(s, Alloc) and s.memory == "arena")]
    only = rest[0] if len(rest) == 1 else None
    return only if isinstance(only, For) and only.kind == "serial" else None
