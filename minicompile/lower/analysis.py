"""Questions about loop nests: shape, strides, dependences, cost. Nothing here changes a kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from minicompile.errors import CompileError
from minicompile.ir.index import Index, Quotient, variables
from minicompile.ir.loop import (
    Accumulate,
    Alloc,
    Bind,
    Call,
    Check,
    Expr,
    For,
    Kernel,
    Load,
    Name,
    Stmt,
    Store,
)
from minicompile.ir.walk import walk
from minicompile.ops.registry import PRIMITIVES

Body: TypeAlias = tuple[Stmt, ...]
Strides: TypeAlias = dict[str, tuple[int, ...]]

# ---------------------------------------------------------------------------------- shape


def loops_of(node: Any) -> Iterator[For]:
    """Every loop below (and including) `node`, outermost first."""
    stmts = node if isinstance(node, tuple) else node.body
    for s in stmts:
        if isinstance(s, For):
            yield s
            yield from loops_of(s.body)


def find(k: Kernel, var: str) -> For:
    """The loop of this variable. CompileError MC030 if the kernel has none."""
    for loop in loops_of(k):
        if loop.var == var:
            return loop
    raise CompileError(
        "MC030", f"kernel {k.name} has no loop {var}", context=", ".join(x.var for x in loops_of(k))
    )


def enclosing(k: Kernel, var: str) -> str:
    """The variable of the loop directly around `var`; "" if it is at the top of the kernel."""
    around = [x.var for x in loops_of(k) if any(y.var == var for y in loops_of(x.body))]
    return around[-1] if around else ""


def chain(loop: For) -> tuple[tuple[For, ...], Body]:
    """The perfectly nested loops that start here, outermost first, and the innermost body."""
    loops, body = [loop], loop.body
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    return tuple(loops), body


def names_of(k: Kernel) -> set[str]:
    """Parameters, buffers, bound names and loop variables: they share one namespace."""
    return {p.name for p in k.params} | set(defined(k.body))


def defined(stmts: Body) -> Iterator[str]:
    """The names that these statements introduce, in order."""
    for s in stmts:
        if isinstance(s, For):
            yield s.var
            yield from defined(s.body)
        elif isinstance(s, Alloc):
            yield s.buf
        elif isinstance(s, Bind):
            yield s.name


def span(loop: For) -> int:
    """One more than the largest value of the loop's variable."""
    return loop.extent if loop.last is None else loop.last + 1


# ---------------------------------------------------------------------------------- memory


def strides_of(k: Kernel) -> Strides:
    """Strides, in elements, of every buffer of the kernel."""
    found = {p.name: p.type.dense_strides for p in k.params}
    for s in walk(k.body):
        if isinstance(s, Alloc):
            found[s.buf] = s.type.dense_strides
    return found


def stride(index: tuple[Index, ...], strides: tuple[int, ...], var: str) -> int | None:
    """How far apart in memory are neighbours along `var`; None where it is not one distance."""
    total = 0
    for i, step in zip(index, strides):
        for atom, coef in i.terms:
            if isinstance(atom, Quotient):
                if var in variables(atom.index):
                    return None
            elif atom == var:
                total += coef * step
    return total


@dataclass(frozen=True)
class Access:
    """One use of memory. `mode` is r (load), w (store) or a (accumulate)."""

    buf: str
    index: tuple[Index, ...]
    mode: str


def accesses(node: Any) -> Iterator[Access]:
    for s in walk(node):
        if isinstance(s, Load):
            yield Access(s.buf, s.index, "r")
        elif isinstance(s, Store):
            yield Access(s.buf, s.index, "w")
        elif isinstance(s, Accumulate):
            yield Access(s.buf, s.index, "a")


def written(node: Any) -> set[str]:
    return {a.buf for a in accesses(node) if a.mode != "r"}


def allocated(node: Any) -> set[str]:
    return {s.buf for s in walk(node) if isinstance(s, Alloc)}


def depends(node: Any, names: set[str]) -> bool:
    """Does anything below `node` read one of these loop variables or bound names?"""
    return any(
        (isinstance(n, Index) and variables(n) & names) or (isinstance(n, Name) and n.name in names)
        for n in walk(node)
    )


def varying(loop: For) -> set[str]:
    """The loop's variable and every scalar bound below it whose value changes with it."""
    names = {loop.var}
    for s in walk(loop.body):
        if isinstance(s, Bind) and depends(s.value, names):
            names.add(s.name)
    return names


# ---------------------------------------------------------------------------------- dependences


def carried(loop: For) -> str:
    """The buffer through which one iteration of the loop could meet another; "" if there is none.

    Law: iterations are independent when, in some dimension, every use of a written buffer has one and
    the same index c*var + rest, and what varies inside the loop moves `rest` by less than |c|: then
    each iteration has a slab of its own.  Buffers allocated inside the loop belong to one iteration.
    """
    if loop.extent <= 1:
        return ""
    inner = {x.var: span(x) for x in loops_of(loop.body)}
    bound = {s.name for s in walk(loop.body) if isinstance(s, Bind)}
    uses: dict[str, list[Access]] = {}
    for a in accesses(loop.body):
        uses.setdefault(a.buf, []).append(a)
    for buf in sorted(written(loop.body) - allocated(loop.body)):
        if not any(
            _slab(dim, loop, inner, bound)
            for dim, *others in zip(*(a.index for a in uses[buf]))
            if all(o == dim for o in others)
        ):
            return buf
    return ""


def _slab(index: Index, loop: For, inner: dict[str, int], bound: set[str]) -> bool:
    """Does `index` = c*var + rest differ from one iteration to the next, whatever rest is inside?"""
    step, reach = 0, 0
    for atom, coef in index.terms:
        if isinstance(atom, Quotient):
            if variables(atom.index) & ({loop.var, *inner} | bound):
                return False
        elif atom == loop.var:
            step = abs(coef) * loop.step
        elif atom in bound:
            return False
        elif atom in inner:
            reach += abs(coef) * (inner[atom] - 1)
    return step > reach


def repeatable(loop: For) -> bool:
    """May an iteration run twice? Yes if what it writes is neither accumulated nor read in the loop."""
    private = allocated(loop.body)
    seen = [a for a in accesses(loop.body) if a.buf not in private]
    changed = {a.buf for a in seen if a.mode != "r"}
    return not any(a.mode == "a" or (a.mode == "r" and a.buf in changed) for a in seen)


def straight(loop: For) -> bool:
    """Do addresses and conditions move in straight lines along the loop (no //, %, table look-ups)?"""
    names = varying(loop)
    looked_up = names - {x.var for x in (loop, *loops_of(loop.body))}
    for n in walk(loop.body):
        if isinstance(n, Check) and variables(n.index) & names:
            return False
        if isinstance(n, Index) and variables(n) & names:
            bent = (variables(a.index) for a, _ in n.terms if isinstance(a, Quotient))
            if variables(n) & looked_up or any(v & names for v in bent):
                return False
    return True


# ---------------------------------------------------------------------------------- cost


def flops(e: Expr | Stmt) -> int:
    """Additions that one evaluation costs, as the registry counts them."""
    return sum(PRIMITIVES[n.op].flops for n in walk(e) if isinstance(n, Call))


@dataclass(frozen=True)
class Work:
    """What a kernel does: additions, and bytes of parameters (each counted once)."""

    flops: float
    bytes: float

    @property
    def microseconds(self) -> float:
        """On one core, when all goes well: 50 G additions/s (vectors, FMA) and 20 GB/s."""
        return max(self.flops / 50e3, self.bytes / 20e3)


def work(k: Kernel) -> Work:
    def count(stmts: Body) -> float:
        total = 0.0
        for s in stmts:
            if isinstance(s, For):
                total += count(s.body) * (s.extent if s.active is None else s.active)
            else:
                total += flops(s) + isinstance(s, (Store, Accumulate))
        return total

    return Work(count(k.body), float(sum(p.type.bytes for p in k.params)))


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def volume(loops: tuple[For, ...]) -> int:
    return math.prod(x.extent for x in loops)
