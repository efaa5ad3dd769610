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
    IndexValue,
    Kernel,
    Load,
    Name,
    Stmt,
    Store,
    dtype_of,
)
from minicompile.ir.problems import Problem
from minicompile.ir.ranges import (
    Fact,
    accesses,
    conflict,
    inner_ranges,
    loop_range,
    opposite,
    trips,
)
from minicompile.ir.types import DType, contiguous_strides
from minicompile.ir.verify_access import Known, Visible
from minicompile.ir.verify_expr import call_problem

LANES = 16


def kernel_problems(kernel: Kernel) -> list[Problem]:
    """Everything that is wrong with the kernel, in the order of its text."""
    check = _Check(kernel)
    for p in kernel.params:
        check.declare(p.name)
        check.buffers[p.name] = Known(p.type, "parameter", initialised=True)
    check.block(kernel.body)
    check.outputs()
    return check.problems


class _Check(Visible):
    """Walks the statements in order."""

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
                self.buffers[buf] = Known(type, memory, initialised=False)
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
