"""`Executable`: a built program that runs on torch tensors."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import torch

from minicompile.codegen.host import arena_layout
from minicompile.errors import IndexOutOfRange
from minicompile.ir.location import lines
from minicompile.ir.loop import ExternCall, Program
from minicompile.ir.torch_call import call_node, overwrite, place
from minicompile.ir.types import DTYPES
from minicompile.runtime import threads
from minicompile.runtime.build import Native
from minicompile.runtime.call import CallPrinter


def _allocator() -> Callable[..., torch.Tensor]:
    """``empty(shape, strides, dtype)``: what Inductor's generated code allocates with, where PyTorch has it;
    it takes half the time of torch.empty_strided."""
    guards = importlib.import_module("torch._C._dynamo.guards")
    fast: Callable[..., torch.Tensor] | None = getattr(guards, "_empty_strided_cpu", None)
    return fast or (lambda n, s, t: torch.empty_strided(n, s, dtype=t, device="cpu"))


empty = _allocator()


class Parameters(Protocol):
    """The parameters of a call, if not a list of tensors: an object that knows their addresses."""

    def tensors(self) -> Sequence[torch.Tensor]: ...
    def pointers(self) -> tuple[int, ...]: ...


def tensors(params: Sequence[torch.Tensor] | Parameters) -> Sequence[torch.Tensor]:
    return params if isinstance(params, (list, tuple)) else params.tensors()  # type: ignore[union-attr]


@dataclass(frozen=True)
class Memory:
    """A block of scratch memory for a call with so many threads. Torch aligns it to 64 bytes."""

    tensor: torch.Tensor
    address: int
    threads: int


class Pool:
    """Scratch memory of one program: a block per running call, so concurrent calls never share one.

    `list.pop` and `list.append` are atomic in CPython.
    """

    def __init__(self, size: Callable[[int], int]) -> None:
        self.size, self._free = size, list[Memory]()

    def take(self, threads: int) -> Memory:
        """A free block; one that is too small for more threads than before is dropped."""
        while self._free:
            try:
                memory = self._free.pop()
            except IndexError:
                break  # another thread was quicker
            if memory.threads >= threads:
                return memory
        tensor = torch.empty(self.size(threads), dtype=torch.uint8, device="cpu")
        return Memory(tensor, tensor.data_ptr(), threads)

    def give(self, memory: Memory) -> None:
        self._free.append(memory)


@dataclass(frozen=True)
class Table:
    """The addresses of the parameters as native code reads them: an i64 array in memory."""

    pointers: tuple[int, ...]
    tensor: torch.Tensor
    address: int


class Addresses:
    """Keeps the table of the latest parameters; it is made anew only when an address changes."""

    def __init__(self) -> None:
        self._table = _table(())

    def __call__(self, params: Any) -> Table:
        if isinstance(params, (list, tuple)):
            pointers = tuple([p.data_ptr() for p in params])
        else:
            pointers = params.pointers()
        table = self._table
        if table.pointers is not pointers and table.pointers != pointers:
            table = self._table = _table(pointers)
        return table


def _table(pointers: tuple[int, ...]) -> Table:
    tensor = torch.tensor(pointers, dtype=torch.int64)
    return Table(pointers, tensor, tensor.data_ptr())


class Executable:
    """Runs a program: ``executable(inputs, params) -> outputs``, lists of CPU tensors in graph order.

    `params` may be any object with the methods of `Parameters`.  Inputs must have the types of the
    graph's inputs (guards see to that).  Raises IndexOutOfRange, with the user's line, when an index read
    from a tensor is out of range; inputs are then unchanged.  Thread-safe.

    text   the generated Python function that does it
    """

    def __init__(self, program: Program, native: Native) -> None:
        self.program, self.native = program, native
        source = native.source
        self._pool = Pool(self._arena_bytes)
        self.text = CallPrinter(program, source, self._arena_bytes(1) > 0).print()
        self.run: Callable[[Sequence[torch.Tensor], Any], list[torch.Tensor]] = self._function()

    def __call__(self, inputs: Sequence[torch.Tensor], params: Any) -> list[torch.Tensor]:
        return self.run(inputs, params)

    def _arena_bytes(self, threads: int) -> int:
        source = self.native.source
        return arena_layout(self.program, source.scratch_bytes, bool(source.checks), threads).bytes

    def _function(self) -> Callable[..., list[torch.Tensor]]:
        names: dict[str, Any] = {d.torch_name: d.torch for d in DTYPES.values()}
        names.update(self.native.hosts)
        names.update(
            empty=empty, tensors=tensors, lie=lie, part=part, alias=alias, write_back=write_back
        )
        names.update(take=self._pool.take, give=self._pool.give, fail=self._fail)
        names.update(count_threads=threads.counter(), addresses=Addresses(), call_node=_call_node)
        for n, call in enumerate(self.program.calls):
            if isinstance(call, ExternCall):
                names[f"node_{n}"] = call.node
        exec(compile(self.text, f"<forward of {self.program.name}>", "exec"), names)
        function: Callable[..., list[torch.Tensor]] = names["forward"]
        return function

    def _fail(self, code: int) -> NoReturn:
        check = self.native.source.checks[code - 1]
        raise IndexOutOfRange(check.size, lines(check.origins))


def _call_node(node: Any, env: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        return call_node(node, env)


def lie(t: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """t in memory with these strides: t itself if it has them already (sizes of 1 do not count)."""
    if all(n == 1 or a == b for n, a, b in zip(t.shape, t.stride(), strides)) or not t.numel():
        return t
    with torch.no_grad():
        return place(t, strides)


def part(
    memory: Memory,
    offset: int,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> torch.Tensor:
    """A buffer in scratch memory as a tensor: valid only during this call."""
    flat = memory.tensor[offset:].view(-1)
    flat = flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
    return flat.as_strided(shape, strides)


def alias(
    base: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...], strides: tuple[int, ...]
) -> torch.Tensor:
    """The memory of `base` seen with another type."""
    t = base if base.dtype is dtype else base.reshape(-1).view(dtype)
    return t.as_strided(shape, strides, t.storage_offset())


def write_back(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Copy each value into its input; a value that is an input itself may be overwritten, so is read first."""
    targets = {t.data_ptr() for t, _ in pairs}
    values = [v.clone() if v.data_ptr() in targets else v for _, v in pairs]
    with torch.no_grad():
        for (target, _), value in zip(pairs, values):
            overwrite(target, value)
