"""Loop IR: kernels as loop nests over buffers, and the program that calls them.

    program := kernel* then one function of calls:
               def NAME(param, ...): (alloc | KERNEL(BUF, ...) | EXTERN)* return BUF, ...
    kernel  := def NAME(param, ...): stmt*
    param   := NAME: type | NAME: type @ strides(INT, ...)       the outputs come last
    stmt    := for VAR in KIND(EXTENT): stmt*                    KIND := serial | parallel | unroll
             | for VAR in vector(LANES, active=INT): stmt*              | vector | block | thread
             | for VAR in KIND(EXTENT, step=INT, last=INT): ...  VAR = min(i*step, last): shifted tail
             | NAME: type @ MEMORY                               MEMORY := register | local | shared
             | NAME: dtype = expr                      (Bind)              | arena
             | BUF[index, ...] = expr                  (Store)
             | BUF[index, ...] += expr                 (Accumulate; also max=, see Accumulate.op)
             | check(index, INT)                       (Check: 0 <= index < INT, else an IndexError)
             | barrier()
    expr    := LITERAL | NAME | BUF[index, ...] | OP(expr, ...) | expr + expr ...
             | index(index)                            the value of an index, as i64
             | expr if LO <= index < HI and ... else expr    each arm is evaluated only where it is taken
             | fold_OP(BUF)                            all elements of a register tile, combined
    index   := affine: INT + INT * atom + ...          atom := VAR | NAME | (index) // INT | (index) % INT

Indices are data, not expressions: a split is a substitution, and whether a load is a vector load, a
broadcast or a strided load is read off the coefficient of the vector variable.  `unroll` and `vector`
stay loops until the printer.  Loop variables, bound names and buffers share one namespace.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, Union

from minicompile.ir.location import Origin
from minicompile.ir.types import DType, TensorType

# ---------------------------------------------------------------------------------- indices


@dataclass(frozen=True)
class Index:
    """``const + sum(coef * atom)``; atoms are loop variables, bound i64 names, or Quotients."""

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0


@dataclass(frozen=True)
class Quotient:
    """``(index) // by`` or, with mod=True, ``(index) % by``: from reshapes no split could undo."""

    index: Index
    by: int
    mod: bool = False


Atom: TypeAlias = Union[str, Quotient]

# ---------------------------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Const:
    value: bool | int | float
    dtype: DType


@dataclass(frozen=True)
class Name:
    """A bound scalar."""

    name: str
    dtype: DType


@dataclass(frozen=True)
class Load:
    buf: str
    index: tuple[Index, ...]
    dtype: DType


@dataclass(frozen=True)
class Call:
    """An elementwise op of the registry, on scalars. `dtype` is the result's."""

    op: str
    args: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True)
class IndexValue:
    """An index as an i64 value (from `iota`)."""

    index: Index


@dataclass(frozen=True)
class If:
    """`then` where every lo <= index < hi holds, else `other`; each is evaluated only where it is taken."""

    conds: tuple[tuple[int, Index, int], ...]
    then: Expr
    other: Expr


@dataclass(frozen=True)
class Fold:
    """All elements of the register tile `buf` combined by the reduction `op` (add, max, ...)."""

    op: str
    buf: str
    dtype: DType


Expr: TypeAlias = Union[Const, Name, Load, Call, IndexValue, If, Fold]

# ---------------------------------------------------------------------------------- statements

KINDS = ("serial", "parallel", "unroll", "vector", "block", "thread")
MEMORIES = ("register", "local", "shared", "arena")


@dataclass(frozen=True)
class Alloc:
    buf: str
    type: TensorType
    memory: str
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True)
class Bind:
    name: str
    value: Expr
    dtype: DType
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True)
class Store:
    buf: str
    index: tuple[Index, ...]
    value: Expr
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True)
class Accumulate:
    """``buf[index] = op(buf[index], value)``; op is a reduction's combine: add, mul, max, min, or, and."""

    buf: str
    index: tuple[Index, ...]
    value: Expr
    op: str = "add"
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True)
class Check:
    """Stop with an IndexError unless 0 <= index < size."""

    index: Index
    size: int
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True)
class Barrier:
    pass


@dataclass(frozen=True)
class For:
    """`for var in kind(extent)`; var takes 0, 1, ... extent-1.

    With step and last, var takes min(i * step, last) for i in 0 ... extent-1: the last tile is shifted
    back, so that it overlaps its neighbour instead of running over the end.  `active` (vector loops):
    only the first `active` lanes load and store.
    """

    var: str
    extent: int
    kind: str
    body: tuple[Stmt, ...]
    active: int | None = None
    step: int = 1
    last: int | None = None


Stmt: TypeAlias = Union[Alloc, Bind, Store, Accumulate, Check, Barrier, For]

# ---------------------------------------------------------------------------------- programs


@dataclass(frozen=True)
class Param:
    name: str
    type: TensorType


@dataclass(frozen=True)
class Kernel:
    """One function. The last `outputs` parameters are written; the others are only read."""

    name: str
    params: tuple[Param, ...]
    outputs: int
    body: tuple[Stmt, ...]

    @property
    def written(self) -> tuple[Param, ...]:
        return self.params[len(self.params) - self.outputs :]


@dataclass(frozen=True)
class KernelCall:
    """`kernel(buffers...)`: buffers by name, in the order of the kernel's parameters."""

    kernel: str
    buffers: tuple[str, ...]


@dataclass(frozen=True)
class ExternCall:
    """A call of PyTorch: `node` is the Graph node as it was (see ir.graph)."""

    node: Any  # ir.graph.Node; Any keeps this module free of it


@dataclass(frozen=True)
class Buffer:
    """Memory of the program. `place` is one of

    input, param (given by the caller), output (allocated per call, returned), arena (`offset` bytes into
    the planned scratch memory once the `buffers` pass ran), tensor (a torch tensor: touches an Extern),
    alias (the memory of buffer `base`, seen with another type).
    """

    name: str
    type: TensorType
    place: str
    base: str = ""
    offset: int | None = None


@dataclass(frozen=True)
class Program:
    """What one forward does: calls in order over named buffers. `graph` is kept for its signature."""

    name: str
    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    calls: tuple[KernelCall | ExternCall, ...]
    graph: Any  # the ir.graph.Graph it was lowered from: inputs, outputs, write-backs
    arena_bytes: int = 0

    def kernel(self, name: str) -> Kernel:
        return next(k for k in self.kernels if k.name == name)

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)


# ---------------------------------------------------------------------------------- index algebra


def ix(*terms: Atom | tuple[Atom, int], const: int = 0) -> Index:
    """``ix("i", ("j", 4), const=1)`` is i + 4*j + 1."""
    return Index(tuple((t, 1) if isinstance(t, (str, Quotient)) else t for t in terms), const)


def add(a: Index, b: Index, scale: int = 1) -> Index:
    """a + scale * b, like terms collected, zero terms dropped, order of first use kept."""
    coefs: dict[Atom, int] = dict(a.terms)
    for atom, c in b.terms:
        coefs[atom] = coefs.get(atom, 0) + c * scale
    return Index(tuple((t, c) for t, c in coefs.items() if c), a.const + b.const * scale)


def times(a: Index, n: int) -> Index:
    return add(Index(), a, n)


def bounds(a: Index, extents: dict[str, int]) -> tuple[int, int] | None:
    """The smallest and largest value, when variables v run over 0 ... extents[v]-1; None if unknown."""
    lo = hi = a.const
    for atom, c in a.terms:
        if isinstance(atom, Quotient):
            inner = bounds(atom.index, extents)
            if atom.mod:
                top = atom.by - 1
                low = 0
            elif inner is not None:
                low, top = inner[0] // atom.by, inner[1] // atom.by
            else:
                return None
        elif atom in extents:
            low, top = 0, extents[atom] - 1
        else:
            return None
        lo, hi = lo + min(c * low, c * top), hi + max(c * low, c * top)
    return lo, hi


def divide(a: Index, by: int, extents: dict[str, int]) -> tuple[Index, Index]:
    """(a // by, a % by), as affine as the ranges of the variables allow.

    Law: (by*q + r) // by = q and (by*q + r) % by = r whenever 0 <= r < by.
    """
    if by == 1:
        return a, Index()
    # 5*i // 4 is i + (i // 4): the multiples of `by` leave each term, and what is left may be small
    whole = Index(tuple((t, c // by) for t, c in a.terms if c // by), a.const // by)
    rest = Index(tuple((t, c % by) for t, c in a.terms if c % by), a.const % by)
    span = bounds(rest, extents)
    if not rest.terms or (span is not None and span[0] >= 0 and span[1] < by):
        return whole, rest
    whole = Index(tuple((t, c // by) for t, c in a.terms if c % by == 0), a.const // by)
    rest = Index(tuple((t, c) for t, c in a.terms if c % by), a.const % by)
    return add(whole, ix(Quotient(rest, by))), ix(Quotient(rest, by, mod=True))


# ---------------------------------------------------------------------------------- rewriting

T = TypeVar("T")

# The fields of each class that hold statements, expressions or indices: what walking descends into.
_CHILDREN: dict[type, tuple[str, ...]] = {
    Load: ("index",),
    Call: ("args",),
    IndexValue: ("index",),
    If: ("conds", "then", "other"),
    Bind: ("value",),
    Store: ("index", "value"),
    Accumulate: ("index", "value"),
    Check: ("index",),
    For: ("body",),
    Kernel: ("params", "body"),
    **dict.fromkeys((Index, Const, Name, Fold, Alloc, Barrier, Param), ()),
}


def rewrite(node: T, f: Callable[[Any], Any]) -> T:
    """Bottom-up rebuild of statements and expressions; f sees every dataclass below `node`.

    Indices are passed whole (not their terms). Unchanged parts are shared.
    """
    if isinstance(node, tuple):
        new = tuple(rewrite(n, f) for n in node)
        return node if all(map(operator.is_, node, new)) else new  # type: ignore[return-value]
    children = _CHILDREN.get(type(node))
    if children is None:
        return node
    changed = {}
    for name in children:
        old = getattr(node, name)
        new_field = rewrite(old, f)
        if new_field is not old:
            changed[name] = new_field
    if changed:
        node = replace(node, **changed)  # type: ignore[type-var]
    result: T = f(node)
    return result


def substitute(node: T, env: dict[str, Index]) -> T:
    """Replace loop variables (and bound names used in indices) by indices everywhere below `node`."""
    return rewrite(node, lambda n: substitute_index(n, env) if isinstance(n, Index) else n)


def substitute_index(index: Index, env: dict[str, Index]) -> Index:
    out = Index((), index.const)
    for atom, c in index.terms:
        if isinstance(atom, Quotient):
            atom = replace(atom, index=substitute_index(atom.index, env))
            out = add(out, ix(atom), c)
        else:
            out = add(out, env.get(atom, ix(atom)), c)
    return out


def variables(index: Index) -> set[str]:
    """The loop variables and bound names an index reads."""
    found: set[str] = set()
    for atom, _ in index.terms:
        found |= variables(atom.index) if isinstance(atom, Quotient) else {atom}
    return found


def walk(node: Any) -> Iterator[Any]:
    """Every statement, expression and index below (and including) `node`, top down."""
    stack = [node]
    while stack:
        n = stack.pop()
        if isinstance(n, tuple):
            stack.extend(reversed(n))
            continue
        children = _CHILDREN.get(type(n))
        if children is not None:
            yield n
            stack.extend(getattr(n, name) for name in reversed(children))


def dtype_of(e: Expr) -> DType:
    from minicompile.ir.types import i64

    if isinstance(e, IndexValue):
        return i64
    if isinstance(e, If):
        return dtype_of(e.then)
    return e.dtype
