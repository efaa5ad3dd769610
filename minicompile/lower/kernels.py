"""Changing the kernels of a program, one by one; their calls are kept in step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from minicompile.ir.loop import Buffer, Kernel, KernelCall, Program
from minicompile.ir.types import TensorType
from minicompile.passes.changes import current


def each_kernel(program: Program, change: Callable[[Kernel], tuple[Kernel, str]]) -> Program:
    """Apply `change` to every kernel; it returns the new kernel and says, in words, what was done."""
    changes, new = current(), list[Kernel]()
    for k in program.kernels:
        changes.focus = k.name
        after, what = change(k)
        new.append(after if after != k and changes.fire(what, k.name) else k)
    return with_kernels(program, new)


def with_kernels(program: Program, kernels: Iterable[Kernel]) -> Program:
    """The program with these kernels. A buffer whose parameter has another type now is seen by an alias.

    k0(x, y)    ->    x_2d: f32[32, 676] @ alias(x); k0(x_2d, y)
    """
    new = {k.name: k for k in kernels}
    views = _Views(program)
    calls = [
        views.call(c, new[c.kernel]) if isinstance(c, KernelCall) else c for c in program.calls
    ]
    return replace(
        program,
        kernels=tuple(new[k.name] for k in program.kernels),
        calls=tuple(calls),
        buffers=tuple(views.buffers.values()),
    )


class _Views:
    """The buffers of a program, and the aliases made so far."""

    def __init__(self, program: Program) -> None:
        self.buffers = {b.name: b for b in program.buffers}

    def call(self, call: KernelCall, kernel: Kernel) -> KernelCall:
        given = zip(call.buffers, kernel.params)
        return replace(call, buffers=tuple(self.seen_as(b, p.type) for b, p in given))

    def seen_as(self, name: str, type: TensorType) -> str:
        b = self.buffers[name]
        if b.type == type or b.type.dims == type.dims:
            return name
        base = b.base if b.place == "alias" else name
        view, n = f"{base}_{type.ndim}d", 1
        while view in self.buffers and self.buffers[view] != Buffer(view, type, "alias", base):
            n += 1
            view = f"{base}_{type.ndim}d_{n}"
        self.buffers[view] = Buffer(view, type, "alias", base)
        return view
