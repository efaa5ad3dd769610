"""The registry's two kinds of entry: primitives (ours) and composites (ATen overloads).

A **primitive** is one of few kinds, and everything below the registry switches on the kind only.
A **composite** stands for ATen overloads; its body is its decomposition into primitives.  An ATen op
without an entry stays what it is: an Extern, run by PyTorch.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import torch

from minicompile.ir.index import Index
from minicompile.ir.loop import Expr
from minicompile.ir.optable import OPS
from minicompile.ir.types import DType, TensorType

if TYPE_CHECKING:
    from minicompile.ops.build import Handle


class Kind(enum.Enum):
    """What lowering, fusion and drawing need to know of a primitive; the value is its letter."""

    ELEMENTWISE = "E"  # a scalar expression per element; operands of equal shape and dtype
    REDUCTION = "R"  # an associative combine over some axes, which disappear
    LAYOUT = "L"  # output index -> input index; never materialised by itself
    CREATION = "C"  # an expression of the index
    CONTRACTION = "M"  # sum of products over shared axes, einsum style
    GATHER = "G"  # a load whose index is itself loaded; bounds are checked
    SCATTER = "T"  # a combining store whose index is itself loaded
    SCAN = "S"  # a running combine along one axis


@dataclass(frozen=True)
class Sample:
    """Example arguments of an op, for its tests: called as ``op(*args, **kwargs)``."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def sample(*args: Any, **kwargs: Any) -> Sample:
    return Sample(args, kwargs)


@dataclass(frozen=True)
class Primitive:
    """One primitive operation.

    infer     (arg types or literals, **attrs) -> result type; raises TypeError with a reason
    meaning   the reference: the same on torch tensors
    infix     the Python operator of an elementwise op ("+"), or ""
    flops     rough cost of one element, in additions (exp counts 10): for fusion and for floors
    combine   reductions, scans, scatters: the name of the combining op (add, mul, max, min, or, and, set)
    domain    dtype kinds the op is defined on, of "fiub" (see DType.kind); casts make up for the rest
    read      layouts: (operand types, attrs, output index, extents of its variables) -> Read
    element   creations: (attrs, output index) -> loop expression
    row_major layouts: keeps the elements in row-major order, so on contiguous memory it is free
    """

    name: str
    kind: Kind
    infer: Callable[..., TensorType]
    meaning: Callable[..., torch.Tensor]
    doc: str
    infix: str = ""
    flops: int = 1
    combine: str = ""
    domain: str = "fiub"
    samples: tuple[Sample, ...] = ()
    read: Callable[..., Read] | None = None
    element: Callable[..., Expr] | None = None
    row_major: bool = False


@dataclass(frozen=True)
class Arm:
    """Read operand number `operand` at `index`, where every ``lo <= i < hi`` of `conds` holds."""

    operand: int
    index: tuple[Index, ...]
    conds: tuple[tuple[int, Index, int], ...] = ()


@dataclass(frozen=True)
class Read:
    """How a layout reads its operands: the first arm whose conditions hold, else the constant `other`."""

    arms: tuple[Arm, ...]
    other: bool | int | float | None = None


@dataclass(frozen=True)
class Composite:
    """An ATen op in terms of primitives. `overloads` are full names: ``aten.add.Tensor``, ``aten.mm``."""

    overloads: tuple[str, ...]
    body: Callable[..., Any]
    doc: str
    samples: tuple[Sample, ...] = ()

    @property
    def name(self) -> str:
        return self.body.__name__.rstrip("_")


PRIMITIVES: dict[str, Primitive] = {}
COMPOSITES: dict[str, Composite] = {}  # by overload

F = TypeVar("F", bound=Callable[..., Any])
Emitter: TypeAlias = "Callable[..., Handle]"  # emits one primitive: Handles and literals in


def primitive(
    name: str,
    kind: Kind,
    infer: Callable[..., TensorType],
    meaning: Callable[..., torch.Tensor],
    doc: str,
    **fields: Any,
) -> Emitter:
    """Register a primitive; returns the function that emits it (see ops.build)."""
    if name in PRIMITIVES:
        raise ValueError(f"primitive {name} is registered twice")
    PRIMITIVES[name] = OPS[name] = Primitive(name, kind, infer, meaning, doc, **fields)
    from minicompile.ops.build import emit

    def emitter(*args: Any, **attrs: Any) -> Handle:
        return emit(name, *args, **attrs)

    emitter.__name__, emitter.__doc__ = name, doc
    return emitter


def composite(*overloads: str, samples: Iterable[Sample] = ()) -> Callable[[F], F]:
    """Register the decorated function as the meaning of ATen overloads: ``@composite("add.Tensor")``.

    The function's parameters have the names, order and defaults of the ATen schema; it gets Handles
    for tensors and Python values for the rest, and returns a Handle or a tuple of them.  It may raise
    errors.NotNative("reason"): then this call stays Extern.
    """
    full = tuple(f"aten.{o}" for o in overloads)

    def register(body: F) -> F:
        entry = Composite(full, body, inspect.getdoc(body) or "", tuple(samples))
        for o in full:
            if o in COMPOSITES:
                raise ValueError(f"composite {o} is registered twice")
            COMPOSITES[o] = entry
        return body

    return register


def kind_of(op: str) -> Kind | None:
    """The kind of a primitive; None for an Extern."""
    entry = PRIMITIVES.get(op)
    return entry.kind if entry else None


def identity(combine: str, dtype: DType) -> bool | int | float:
    """The neutral element of a combine: 0 for add, -inf for max, ..."""
    if combine in ("add", "or"):
        return False if dtype.kind == "b" else 0.0 if dtype.is_float else 0
    if combine in ("mul", "and"):
        return True if dtype.kind == "b" else 1.0 if dtype.is_float else 1
    if combine not in ("max", "min"):
        raise ValueError(f"{combine} has no neutral element")
    if dtype.is_float:
        return float("-inf") if combine == "max" else float("inf")
    if dtype.kind == "b":
        return combine == "min"
    info = torch.iinfo(dtype.torch)
    return info.min if combine == "max" else info.max
