"""The rules of a well-formed kernel.

L1   names are Python names and no reserved words; loop variables, scalars and buffers share one
     namespace, and no name is declared again where it is visible (a block and the blocks in it)
L2   everything is declared before it is used, in the same block or around it
L3   an access has one index for each dimension of its buffer
L4   an index stays inside its dimension; one that reads a bound name must be bounded by a Check
     before, or by a condition around
L5   kinds and memories are known ones; extents, steps and sizes are not negative; a vector loop has
     16 lanes, of which 1 ... 16 are active
L6   a register is addressed by variables of unroll and vector loops only, so that each element
     is a variable of the generated code
L7   the iterations of a parallel (or block) loop write disjoint elements of the buffers around it
L8   dtypes agree: of an element and the value stored, of a scalar and its declaration, of an op and its
     operands, of the two arms of a choice
L9   the last `outputs` parameters are written, the others are not
L10  a register, local or shared buffer is stored to before it is read
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from minicompile.ir.loop import (
    KINDS,
    MEMORIES,
    Accumulate,
    Alloc,
    Bind,
    Check,
    Expr,
    Fold,
    For,
    If,
    Index,
    IndexValue,
    Kernel,
    Load,
    Name,
    Quotient,
    Stmt,
    Store,
    dtype_of,
    variables,
)
from minicompile.ir.loop_text import KernelPrinter
from minicompile.ir.problems import Problem, bad_name
from minicompile.ir.ranges import (
    Fact,
    Range,
    accesses,
    conflict,
    inner_ranges,
    interval,
    loop_range,
    opposite,
    trips,
)
from minicompile.ir.types import DType, TensorType, contiguous_strides
from minicompile.ir.verify_expr import call_problem

LANES = 16


def kernel_problems(kernel: Kernel) -> list[Problem]:
    """Everything that is wrong with the kernel, in the order of its text."""
    check = _Check(kernel)
    for p in kernel.params:
        check.declare(p.name)
        check.buffers[p.name] = _Buffer(p.type, "parameter", initialised=True)
    check.block(kernel.body)
    check.outputs()
    return check.problems


@dataclass
class _Buffer:
    type: TensorType
    memory: str
    initialised: bool


class _Check:
    """Walks the statements in order. What is visible is kept in dicts that each block restores."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.problems: list[Problem] = []
        self.printer = KernelPrinter(kernel)
        self.context: list[str] = []  # the loops around, as text
        self.buffers: dict[str, _Buffer] = {}
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

    def block(self, stmts: tuple[Stmt, ...]) -> None:
        with self.scope():
            for s in stmts:
                indent = "    " * len(self.context)
                self.context.append(indent + self.printer.statement(s))
                self.statement(s)
                self.context.pop()

    # ------------------------------------------------------------------------------ statements

    def statement(self, s: Stmt) -> None:
        match s:
            case For():
                self.loop(s)
            case Alloc(buf, type, memory):
                self.declare(buf)
                if memory not in MEMORIES:
                    self.add("L5", f"{memory} is no memory; there are {', '.join(MEMORIES)}")
                self.buffers[buf] = _Buffer(type, memory, initialised=False)
            case Bind(name, value, dtype):
                self.expr(value)
                self.agree(dtype_of(value), dtype, name)
                self.declare(name)
                self.scalars[name] = dtype
            case Store(buf, index, value):
                self.expr(value)
                self.write(buf, index, value)
            case Accumulate(buf, index, value):
                self.expr(value)
                self.read(buf)
                self.write(buf, index, value)
            case Check(index, size):
                self.names(index)
                self.facts.append((0, index, size))
                if len(index.terms) == 1 and index.terms[0][1] == 1 and not index.const:
                    self.ranges[str(index.terms[0][0])] = (0, size - 1)

    def loop(self, s: For) -> None:
        if s.kind not in KINDS:
            self.add("L5", f"{s.kind} is no kind of loop; there are {', '.join(KINDS)}")
        if s.extent < 0 or s.step < 1:
            self.add("L5", "the extent must not be negative, the step at least 1")
        if s.kind == "vector" and s.extent != LANES:
            self.add("L5", f"a vector loop has {LANES} lanes")
        if s.active is not None and not (s.kind == "vector" and 1 <= s.active <= s.extent):
            self.add("L5", f"active must be 1 ... {s.extent}, and the loop a vector loop")
        self.declare(s.var)
        if s.kind in ("parallel", "block"):
            self.disjoint(s)
        if trips(s) == 0:
            return
        with self.scope():
            self.loops[s.var], self.ranges[s.var] = s, loop_range(s)
            self.block(s.body)

    def disjoint(self, s: For) -> None:
        inner = inner_ranges(s)
        for buf, at in accesses(s).items():
            known = self.buffers.get(buf)
            strides = contiguous_strides(known.type.dims) if known else ()
            if conflict(s, at, inner, strides):
                self.add("L7", f"iterations of {s.var} may write the same element of {buf}")

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

    # ------------------------------------------------------------------------------ expressions

    def expr(self, e: Expr) -> None:
        match e:
            case Name(name, dtype):
                if name not in self.scalars:
                    self.add("L2", f"{name} is not a bound scalar here")
                else:
                    self.agree(dtype, self.scalars[name], name)
            case Load(buf, index, dtype):
                self.access(buf, index)
                self.loaded(buf, dtype)
            case Fold(_, buf, dtype):
                if buf not in self.buffers:
                    self.add("L2", f"{buf} is not a buffer here")
                self.loaded(buf, dtype)
            case IndexValue(index):
                self.names(index)
            case If(conds, then, other):
                self.choice(conds, then, other)
            case _:
                for a in getattr(e, "args", ()):
                    self.expr(a)
                if message := call_problem(e):
                    self.add("L8", message)

    def loaded(self, buf: str, dtype: DType) -> None:
        self.read(buf)
        if buf in self.buffers:
            self.agree(dtype, self.buffers[buf].type.dtype, buf)

    def choice(self, conds: tuple[Fact, ...], then: Expr, other: Expr) -> None:
        for _, index, _ in conds:
            self.names(index)
        saved = list(self.facts)
        self.facts = [*saved, *conds]
        self.expr(then)
        self.facts = [*saved, *opposite(conds, self.ranges, saved)]
        self.expr(other)
        self.facts = saved
        if dtype_of(then) is not dtype_of(other):
            self.add("L8", f"the arms are {dtype_of(then)} and {dtype_of(other)}")

    # ------------------------------------------------------------------------------ the whole

    def outputs(self) -> None:
        outputs = {p.name for p in self.kernel.written} if self.kernel.outputs else set()
        for p in self.kernel.params:
            self.context = [self.printer.head()]
            if p.name in outputs and p.name not in self.written and p.type.numel:
                self.add("L9", f"nothing is stored in the output {p.name}")
            if p.name in self.written and p.name not in outputs:
                self.add("L9", f"{p.name} is stored to, but is not one of the outputs")
