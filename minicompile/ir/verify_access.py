"""What is visible at a place in a kernel, and the rules for accesses there: L1 to L4, L6, L8 and L10."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from minicompile.ir.index import Index, Quotient, variables
from minicompile.ir.loop import Expr, For, Kernel, dtype_of
from minicompile.ir.loop_text import KernelPrinter
from minicompile.ir.problems import Problem, bad_name
from minicompile.ir.ranges import Fact, Range, interval
from minicompile.ir.types import DType, TensorType


@dataclass
class Known:
    """A visible buffer."""

    type: TensorType
    memory: str
    initialised: bool


class Visible:
    """Buffers, scalars and loops by name, ranges of indices, facts that hold; each block restores them."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.problems: list[Problem] = []
        self.printer = KernelPrinter(kernel)
        self.context: list[str] = []  # the loops around, as text
        self.buffers: dict[str, Known] = {}
        self.scalars: dict[str, DType] = {}
        self.loops: dict[str, For] = {}
        self.ranges: dict[str, Range | None] = {}
        self.facts: list[Fact] = []
        self.written: set[str] = set()

    def add(self, rule: str, message: str) -> None:
        self.problems.append(Problem(rule, message, "\n".join(self.context)))

    # ------------------------------------------------------------------------------ scopes

    @contextmanager
    def scope(self) -> Iterator[None]:
        saved = (
            dict(self.buffers), dict(self.scalars), dict(self.loops), dict(self.ranges),
            list(self.facts),
        )  # fmt: skip
        yield
        self.buffers, self.scalars, self.loops, self.ranges, self.facts = saved

    def declare(self, name: str) -> None:
        if bad := bad_name(name):
            self.add("L1", bad)
        if name in self.buffers or name in self.scalars or name in self.loops:
            self.add("L1", f"{name} is declared already")

    # ------------------------------------------------------------------------------ memory

    def write(self, buf: str, index: tuple[Index, ...], value: Expr) -> None:
        self.access(buf, index)
        if buf in self.buffers:
            self.buffers[buf].initialised = True
            self.agree(dtype_of(value), self.buffers[buf].type.dtype, buf)
            self.written.add(buf)

    def read(self, buf: str) -> None:
        if buf in self.buffers and not self.buffers[buf].initialised:
            self.add("L10", f"{buf} is read before anything is stored in it")
            self.buffers[buf].initialised = True  # say it once

    def access(self, buf: str, index: tuple[Index, ...]) -> None:
        for i in index:
            self.names(i)
        known = self.buffers.get(buf)
        if known is None:
            self.add("L2", f"{buf} is not a buffer here")
            return
        dims = known.type.dims
        if len(index) != len(dims):
            self.add("L3", f"{buf} has {len(dims)} dimensions, not {len(index)}")
            return
        for d, (i, n) in enumerate(zip(index, dims)):
            self.inside(buf, d, i, n)
            if known.memory == "register":
                self.constant(buf, i)

    def inside(self, buf: str, d: int, index: Index, size: int) -> None:
        span = interval(index, self.ranges, self.facts)
        if span is None:
            unknown = ", ".join(sorted(v for v in variables(index) if v in self.scalars))
            self.add("L4", f"nothing bounds {unknown or 'the index'} in dimension {d} of {buf}")
        elif span[0] < 0 or span[1] >= size:
            where = f"dimension {d} of {buf}, of size {size}"
            self.add("L4", f"the index runs over {span[0]} ... {span[1]} in {where}")

    def constant(self, buf: str, index: Index) -> None:
        for v in sorted(variables(index)):
            if v not in self.loops or self.loops[v].kind not in ("unroll", "vector"):
                self.add("L6", f"{v} is no unroll or vector variable, but {buf} lies in registers")

    def names(self, index: Index) -> None:
        """Everything an index reads is a visible loop variable or i64 scalar."""
        for v in sorted(variables(index)):
            if v not in self.loops and self.scalars.get(v, None) is None:
                self.add("L2", f"{v} is not declared here")
            elif v in self.scalars and self.scalars[v].name != "i64":
                self.add("L8", f"{v} is {self.scalars[v]}, an index must be i64")
        for atom, _ in index.terms:
            if isinstance(atom, Quotient) and atom.by < 1:
                self.add("L5", f"division by {atom.by}")

    def agree(self, found: DType, expected: DType, name: str) -> None:
        if found is not expected:
            self.add("L8", f"{name} is {expected}, the value {found}")
