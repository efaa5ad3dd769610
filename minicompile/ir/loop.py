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

from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from minicompile.ir.index import Index
from minicompile.ir.location import Origin
from minicompile.ir.types import DType, TensorType

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


def dtype_of(e: Expr) -> DType:
    from minicompile.ir.types import i64

    if isinstance(e, IndexValue):
        return i64
    if isinstance(e, If):
        return dtype_of(e.then)
    return e.dtype
