"""The reference interpreter of kernels: loops become array axes wherever their iterations are independent.

An interpreter that ran one scalar at a time would need minutes for a model.  Here a loop whose iterations
cannot influence each other (`ranges.conflict`) runs all of them at once, one statement after the
other; an Accumulate then is a reduction over the axes that its target does not have.  Any other loop
runs one iteration at a time.  Loops run in chunks, so that no temporary has more than LIMIT elements.
Arithmetic is that of the registry's meanings on tensors of the stated dtypes, so f32 rounds as f32; only
the order of a sum is free.  Uninitialised memory is NaN, so that reading it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from minicompile.ir.combine import COMBINE, REDUCE, SCATTER, constant, poisoned
from minicompile.ir.index import Index
from minicompile.ir.loop import (
    Accumulate,
    Alloc,
    Barrier,
    Bind,
    Call,
    Check,
    Const,
    Expr,
    Fold,
    For,
    If,
    IndexValue,
    Kernel,
    Load,
    Name,
    Stmt,
    Store,
)
from minicompile.ir.loop_memory import Axis, Memory, Place, injective
from minicompile.ir.optable import OPS, takes_dtype
from minicompile.ir.ranges import accesses, conflict, inner_ranges, trips

LIMIT = 1 << 21  # elements of a temporary: 8 MB of f32


def run_kernel(kernel: Kernel, buffers: Mapping[str, torch.Tensor]) -> None:
    """Run the kernel on tensors named as its parameters, with any strides; writes its outputs.

    IndexError when a Check fails.
    """
    missing = [p.name for p in kernel.params if p.name not in buffers]
    if missing:
        raise ValueError(f"{kernel.name} needs buffers {', '.join(missing)}")
    run = _Run()
    run.at.memory = {p.name: Memory(buffers[p.name]) for p in kernel.params}
    with torch.no_grad():
        run.block(kernel.body)


class _Run:
    def __init__(self) -> None:
        self.at = Place()
        self.masked = (
            False  # in an arm that some iterations do not take: indices may be out of bounds
        )
        self._together: dict[int, bool] = {}
        self._volume: dict[int, int] = {}

    # ------------------------------------------------------------------------------ statements

    def block(self, stmts: tuple[Stmt, ...]) -> None:
        for s in stmts:
            self.statement(s)

    def statement(self, s: Stmt) -> None:
        match s:
            case For():
                self.loop(s)
            case Alloc(buf, type):
                depth = len(self.at.axes)
                memory = poisoned((*self.at.counts, *type.dims), type.dtype)
                self.at.memory[buf] = Memory(memory, depth)
            case Bind(name, value):
                self.at.names[name] = self.expr(
                    value
                ).clone()  # a load is a view: memory may change
            case Store(buf, index, value):
                self.store(self.at.memory[buf], index, self.expr(value))
            case Accumulate(buf, index, value, op):
                self.accumulate(self.at.memory[buf], index, self.expr(value), op)
            case Check(index, size):
                found = torch.as_tensor(self.at.values(index))
                if bool(((found < 0) | (found >= size)).any()):
                    raise IndexError(f"index out of range in an axis of size {size}")
            case Barrier():
                pass  # threads run in lockstep here

    def loop(self, s: For) -> None:
        """Whole chunks of independent iterations, the shifted ones at the end one by one."""
        n = trips(s)
        whole = n if s.last is None else min(n, s.last // s.step + 1)
        size = self.chunk(s)
        for start in range(0, whole, size):
            self.iterations(s, start, min(size, whole - start))
        for _ in range(whole, n):
            self.one(s, s.last or 0)

    def iterations(self, s: For, start: int, count: int) -> None:
        if count == 1:
            self.one(s, start * s.step)
            return
        self.at.axes.append(Axis(s.var, start, count, s.step))
        self.block(s.body)
        self.at.axes.pop()

    def one(self, s: For, value: int) -> None:
        self.at.fixed[s.var] = value
        self.block(s.body)
        del self.at.fixed[s.var]

    def chunk(self, s: For) -> int:
        """How many iterations run at once."""
        if s.kind == "thread":
            return max(trips(s), 1)
        if not self.together(s):
            return 1
        running = 1
        for axis in self.at.axes:
            running *= axis.count
        return max(1, LIMIT // (running * self.volume(s.body)))

    def together(self, s: For) -> bool:
        """May all iterations run at once?"""
        if id(s) not in self._together:
            inner = inner_ranges(s)
            self._together[id(s)] = not any(
                conflict(s, a, inner) for a in accesses(s).values() if not a.only_accumulates
            )
        return self._together[id(s)]

    def volume(self, body: tuple[Stmt, ...]) -> int:
        """Elements of the largest temporary in one execution of `body`."""
        if id(body) not in self._volume:
            self._volume[id(body)] = max([1, *map(self._statement_volume, body)])
        return self._volume[id(body)]

    def _statement_volume(self, s: Stmt) -> int:
        if isinstance(s, Alloc):
            return s.type.numel
        if isinstance(s, For):
            return self.volume(s.body) * (max(trips(s), 1) if self.together(s) else 1)
        return 1

    # ------------------------------------------------------------------------------ memory

    def load(self, m: Memory, index: tuple[Index, ...]) -> torch.Tensor:
        if m.tensor.numel() == 0:  # only in an arm that is never taken
            return m.tensor.new_zeros(())
        view = None if self.masked else self.at.view(m, index)
        if view is not None:
            return view
        subscript = tuple(self.at.subscript(m, index, clamp=self.masked))
        return m.tensor[subscript] if subscript else m.tensor

    def store(self, m: Memory, index: tuple[Index, ...], value: torch.Tensor) -> None:
        value = self.at.aligned(value)
        view = self.at.view(m, index)
        if view is None or not injective(view.shape, view.stride()):
            m.tensor[tuple(self.at.subscript(m, index, clamp=False))] = value
            return
        if value.ndim:  # axes that the target does not have: the last iteration wins
            for axis, n in enumerate(view.shape):
                value = value.narrow(axis, -1, 1) if n < value.shape[axis] else value
        view.copy_(value)

    def accumulate(self, m: Memory, index: tuple[Index, ...], value: torch.Tensor, op: str) -> None:
        view = self.at.view(m, index)
        if view is None or not injective(view.shape, view.stride()):
            self.scatter(m, index, value, op)
            return
        counts = self.at.counts
        summed = [axis for axis, n in enumerate(counts) if view.shape[axis] < n]
        if summed:
            value = self.at.aligned(value) if value.ndim else value.reshape([1] * len(counts))
            full = [n if a in summed else -1 for a, n in enumerate(counts)]
            value = REDUCE[op](value.expand(full), summed)
        view.copy_(COMBINE[op](view, self.at.aligned(value)))

    def scatter(self, m: Memory, index: tuple[Index, ...], value: torch.Tensor, op: str) -> None:
        """Accumulate where several iterations meet in one element."""
        position = torch.tensor(m.tensor.storage_offset())
        for at, step in zip(self.at.subscript(m, index, clamp=False), m.tensor.stride()):
            position = position + at * step
        counts = self.at.counts
        storage = m.tensor.as_strided((_elements(m.tensor),), (1,), 0)
        source = (
            self.at.aligned(value).expand(counts).reshape(-1).clone()
        )  # it may be the target itself
        if m.tensor.dtype is torch.bool:
            storage, source = storage.view(torch.uint8), source.to(torch.uint8)
        storage.scatter_reduce_(0, position.expand(counts).reshape(-1), source, SCATTER[op])

    # ------------------------------------------------------------------------------ expressions

    def expr(self, e: Expr) -> torch.Tensor:
        """The value for every iteration that runs: one dimension per axis, or none."""
        match e:
            case Const(value, dtype):
                return constant(value, dtype)
            case Name(name):
                return self.at.aligned(self.at.names[name])
            case Load(buf, index):
                return self.load(self.at.memory[buf], index)
            case Call(op, args, dtype):
                values = [self.expr(a) for a in args]
                extra: dict[str, Any] = {"dtype": dtype} if takes_dtype(op) else {}
                result: torch.Tensor = OPS[op].meaning(*values, **extra)
                return result
            case IndexValue(index):
                return torch.as_tensor(self.at.values(index))
            case If():
                return self.choose(e)
            case Fold(op, buf):
                return self.fold(self.at.memory[buf], op)
        raise TypeError(f"{e!r} is not an expression of the Loop IR")

    def choose(self, e: If) -> torch.Tensor:
        mask = torch.tensor(True)
        for lo, index, hi in e.conds:
            value = torch.as_tensor(self.at.values(index))
            mask = mask & (value >= lo) & (value < hi)
        if bool(mask.all()):
            return self.expr(e.then)
        if not bool(mask.any()):
            return self.expr(e.other)
        before, self.masked = self.masked, True
        then, other = self.expr(e.then), self.expr(e.other)
        self.masked = before
        return torch.where(mask, then, other)

    def fold(self, m: Memory, op: str) -> torch.Tensor:
        value = m.tensor.reshape(*m.tensor.shape[: m.depth], -1)
        return self.at.aligned(REDUCE[op](value, [m.depth]).squeeze(m.depth))


def _elements(t: torch.Tensor) -> int:
    return t.untyped_storage().nbytes() // t.element_size()
