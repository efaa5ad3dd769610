"""One kernel of the Loop IR as a Python function on Vec and Ptr values.

    serial    for i in range(n):                parallel  for i in range(lo, hi): the host divides it
    unroll    n copies of the body              vector    the body once, on values of 16 lanes
    register  one name per element (tiles.py)   other     a part of the scratch memory

Accumulating a product is a fused multiply-add; a load that is used again in the same loop body gets a
name.  A Check that fails stores its number for the host and leaves the kernel.
"""

from __future__ import annotations

from minicompile.codegen.addresses import Vector, scalar_text, varies
from minicompile.codegen.expressions import Expressions
from minicompile.codegen.reuse import Reuse
from minicompile.codegen.source import (
    Check as SourceCheck,
)
from minicompile.codegen.source import (
    CodeWriter,
    KernelSource,
    Namespace,
    annotation,
)
from minicompile.codegen.stores import Stores
from minicompile.codegen.tiles import LANES, find_tiles, is_vector_loop
from minicompile.ir.index import ix, variables
from minicompile.ir.loop import Accumulate, Alloc, Barrier, Bind, Check, For, Kernel, Stmt, Store
from minicompile.ir.walk import substitute, walk

ALIGN = 64  # bytes: one cache line, one AVX-512 register


class KernelPrinter:
    """Prints one kernel into `writer`; `checks` counts on over all kernels of the module."""

    def __init__(
        self, kernel: Kernel, writer: CodeWriter, checks: list[SourceCheck], used: set[str]
    ):
        self.kernel, self.writer, self.checks = kernel, writer, checks
        self.names = Namespace(_names(kernel))
        self.tiles = find_tiles(kernel.body, self.names)
        self.reuse = Reuse(writer, self.names)
        types = {p.name: p.type for p in kernel.params}
        self.text = Expressions(self.reuse, types, self.tiles, used=used)
        self.stores = Stores(writer, self.text, self.tiles)
        self.parallel = _parallel_loop(kernel)
        self.scratch_bytes = 0
        self.scratch, self.error, self.lo, self.hi = map(
            self.names.fresh, ("scratch", "error", "lo", "hi")
        )

    def print(self) -> KernelSource:
        first = len(self.writer.lines) + 1
        memory, extra = self._memory(), self._extra()
        params = [annotation(p.name, p.type) for p in self.kernel.params]
        kinds = {"scratch": "memory", "error": "i64", "lo": "int", "hi": "int"}
        params += [f"{getattr(self, name)}: {kinds[name]}" for name in extra]
        self.writer.line("@kernel", why="a kernel")
        self.writer.signature(self.kernel.name, params, "the buffers, inputs first, outputs last")
        with self.writer.block():
            self._prologue(memory)
            self._body(self.kernel.body)
        self._drop_unused_masks(first)
        extent = self.parallel.extent if self.parallel else None
        last = len(self.writer.lines)
        return KernelSource(self.kernel.name, first, last, extra, self.scratch_bytes, extent)

    def _extra(self) -> tuple[str, ...]:
        checked = any(isinstance(n, Check) for n in walk(self.kernel.body))
        wanted = (("scratch", self.scratch_bytes), ("error", checked))
        bounds = ("lo", "hi") if self.parallel else ()
        return (*(name for name, want in wanted if want), *bounds)

    # ------------------------------------------------------------------ before the body

    def _memory(self) -> list[tuple[Alloc, int]]:
        """Allocations that are no register tiles, with their places in the scratch memory (bytes)."""
        places = []
        for alloc, lanes in _allocations(self.kernel.body, None):
            if alloc.buf not in self.tiles:
                type = alloc.type.pure()
                if lanes:  # one for each lane: the lanes are the last dimension
                    type = type.with_shape((*type.shape, LANES))
                    self.text.private.add(alloc.buf)
                self.text.types[alloc.buf] = type
                places.append((alloc, self.scratch_bytes))
                self.scratch_bytes += -(-type.bytes // ALIGN) * ALIGN
        return places

    def _prologue(self, memory: list[tuple[Alloc, int]]) -> None:
        for alloc, place in memory:
            dtype = alloc.type.dtype.name
            self.text.used.add(dtype)
            address = self.text.function("view", self.scratch, str(place), dtype)
            self.writer.line(f"{alloc.buf} = {address}", alloc.origins, "private memory")
        self.masks: dict[int, str] = {}
        for loop in walk(self.kernel.body):
            if isinstance(loop, For) and loop.kind == "vector" and _active(loop) < LANES:
                self._mask(_active(loop))

    def _mask(self, active: int) -> None:
        if active not in self.masks:
            self.masks[active] = name = self.names.fresh(f"first_{active}")
            mask = self.text.function("first_lanes", str(active))
            self.writer.line(f"{name} = {mask}", why=f"the mask of {active} active lanes")

    def _drop_unused_masks(self, first: int) -> None:
        """A vector loop with few lanes may touch no memory at all."""
        mine = self.writer.lines[first - 1 :]
        text = "\n".join(line.text for line in mine)
        unused = {name for name in self.masks.values() if text.count(name) == 1}
        kept = [line for line in mine if line.text.strip().split(" ")[0] not in unused]
        self.writer.lines[first - 1 :] = kept

    # ------------------------------------------------------------------ statements

    def _body(self, body: tuple[Stmt, ...]) -> None:
        """The body of a serial loop: a first round counts its loads, so that the second can name
        those used twice."""
        outer = self.reuse.cache, self.reuse.uses
        self.reuse.forget(*_changed(body))
        kept = self.reuse.cache
        self.reuse.cache, self.reuse.uses = dict(kept), type(self.reuse.uses)()
        self._count(body)
        self.reuse.cache = dict(kept)
        before = len(self.writer.lines)
        self._statements(body)
        if len(self.writer.lines) == before:
            self.writer.line("pass", why="nothing to do here")
        self.reuse.cache, self.reuse.uses = outer

    def _count(self, body: tuple[Stmt, ...]) -> None:
        lines, depth = len(self.writer.lines), self.writer.depth
        names, lanes = set(self.names.taken), set(self.text.lanes)
        checks, comment = len(self.checks), self.writer.comment
        self.reuse.counting = True
        self._statements(body)
        self.reuse.counting = False
        del self.writer.lines[lines:], self.checks[checks:]
        self.names.taken, self.text.lanes = names, lanes
        self.writer.depth, self.writer.comment = depth, comment

    def _statements(self, body: tuple[Stmt, ...]) -> None:
        for s in body:
            if isinstance(s, For):
                self._loop(s)
            elif isinstance(s, (Bind, Store, Accumulate, Check)):
                self.reuse.origins = s.origins
                self._statement(s)

    def _statement(self, s: Bind | Store | Accumulate | Check) -> None:
        if isinstance(s, Bind):
            self._bind(s)
        elif isinstance(s, Check):
            self._check(s)
        else:
            self.stores.print(s)

    def line(self, text: str, s: Bind | Store | Accumulate | Check) -> None:
        self.writer.line(text, s.origins, "made by the compiler")

    def _bind(self, s: Bind) -> None:
        value = self.text.typed(s.value)
        self.line(f"{s.name} = {value.text}", s)
        self.reuse.forget(names={s.name})
        (self.text.lanes.add if value.vector else self.text.lanes.discard)(s.name)

    def _check(self, s: Check) -> None:
        index = s.index
        if varies(index, self.text.vector, self.text.lanes):
            text = self.text.vector_index(index)
        else:
            text = scalar_text(index)
        if not variables(index) & self.tiles.bound:
            text = self.text.function("i64", text)
        number = len(self.checks) + 1
        self.checks.append(SourceCheck(number, s.size, s.origins))
        self.line(f"if {self.text.function('outside', text, str(s.size))}:", s)
        with self.writer.block():
            self.writer.line(f"{self.error}[0] = {number}", why="reported as an IndexError")
            self.writer.line("return", why="reported as an IndexError")

    # ------------------------------------------------------------------ loops

    def _loop(self, s: For) -> None:
        if s.extent == 0:
            return
        if s.kind == "unroll":
            for n in range(s.extent):
                at = n * s.step if s.last is None else min(n * s.step, s.last)
                self._statements(substitute(s.body, {s.var: ix(const=at)}))
        elif is_vector_loop(s, self.text.vector.var if self.text.vector else None):
            self._vector(s)
        else:
            self._serial(s)

    def _vector(self, s: For) -> None:
        active = _active(s)
        mask = self.masks[active] if active < LANES else ""
        self.text.vector, self.text.mask = Vector(s.var, active, mask), mask
        self._statements(s.body)
        self.text.vector, self.text.mask = None, ""

    def _serial(self, s: For) -> None:
        if not self.reuse.counting:
            extent = _active(s) if s.kind == "vector" else s.extent
            even = s.last is None or s.last == (extent - 1) * s.step
            bounds = f"{self.lo}, {self.hi}" if s is self.parallel else str(extent)
            counter = s.var if s.step == 1 and even else self.names.fresh(f"{s.var}_n")
            self.writer.line(f"for {counter} in range({bounds}):", why=f"the loop {s.var}")
            with self.writer.block():
                if counter != s.var:
                    at = f"{counter} * {s.step}"
                    value = at if even else f"min({at}, {s.last})"
                    self.writer.line(f"{s.var} = {value}", why="the last tile is shifted back")
                self._body(s.body)
        self.reuse.forget(*_changed(s.body))


def _changed(body: tuple[Stmt, ...]) -> tuple[set[str], set[str]]:
    """The buffers that are written and the names that are bound anywhere below."""
    statements = list(walk(body))
    written = {s.buf for s in statements if isinstance(s, (Store, Accumulate))}
    return written, {s.name for s in statements if isinstance(s, Bind)}


def _active(loop: For) -> int:
    return min(loop.extent, loop.extent if loop.active is None else loop.active)


def _parallel_loop(kernel: Kernel) -> For | None:
    """The loop to divide among threads: parallel, and nothing beside it writes memory."""
    loops = [s for s in kernel.body if isinstance(s, For)]
    beside = [s for s in kernel.body if isinstance(s, (Store, Accumulate, Barrier))]
    if len(loops) == 1 and not beside and loops[0].kind == "parallel":
        return loops[0]
    return None


def _names(kernel: Kernel) -> set[str]:
    found = {p.name for p in kernel.params}
    for n in walk(kernel.body):
        if isinstance(n, For):
            found.add(n.var)
        elif isinstance(n, Bind):
            found.add(n.name)
        elif isinstance(n, Alloc):
            found.add(n.buf)
    return found


def _allocations(body: tuple[Stmt, ...], vector: str | None) -> list[tuple[Alloc, bool]]:
    """Every Alloc, and whether it stands inside a vector loop (then each lane has its own)."""
    found: list[tuple[Alloc, bool]] = []
    for s in body:
        if isinstance(s, Alloc):
            found.append((s, vector is not None))
        elif isinstance(s, For):
            found += _allocations(s.body, s.var if is_vector_loop(s, vector) else vector)
    return found
