"""Equal kernels are kept once.

Two kernels are equal when renaming buffers, loop variables and bound names makes them the same text.
The one that stays keeps its names and gets the origins of all.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from minicompile.ir.index import Index, Quotient
from minicompile.ir.location import Origin, unite
from minicompile.ir.loop import Kernel, KernelCall, Program
from minicompile.ir.types import DType, TensorType


def share_equal_kernels(program: Program) -> Program:
    """The program with one kernel for each class of equal ones, and its calls redirected."""
    first: dict[Any, Kernel] = {}
    name_of: dict[str, str] = {}
    for kernel in program.kernels:
        key = shape_of(kernel)
        have = first.get(key)
        first[key] = kernel if have is None else _with_origins(have, kernel)
        name_of[kernel.name] = first[key].name
    calls = tuple(
        replace(c, kernel=name_of[c.kernel]) if isinstance(c, KernelCall) else c
        for c in program.calls
    )
    return replace(program, kernels=tuple(first.values()), calls=calls)


def shape_of(kernel: Kernel) -> Any:
    """The kernel as nested tuples with every name replaced by the number of its first appearance."""
    numbers: dict[str, int] = {}

    def number(name: str) -> int:
        return numbers.setdefault(name, len(numbers))

    def index_shape(i: Index) -> Any:
        return (
            tuple(
                (number(a) if isinstance(a, str) else (index_shape(a.index), a.by, a.mod), c)
                for a, c in i.terms
            ),
            i.const,
        )

    def shape(node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(shape(n) for n in node if not isinstance(n, Origin))
        if isinstance(node, Index):
            return index_shape(node)
        if isinstance(node, float):
            return repr(node)  # nan equals nan, and 0.0 is not -0.0
        if isinstance(node, (DType, TensorType, Quotient)) or not is_dataclass(node):
            return node
        parts: list[Any] = [type(node).__name__]
        for f in fields(node):
            value = getattr(node, f.name)
            is_name = isinstance(value, str) and f.name in ("buf", "name", "var")
            parts.append(number(value) if is_name else shape(value))
        return tuple(parts)

    return shape(kernel.params), kernel.outputs, shape(kernel.body)


def _with_origins(keep: Kernel, other: Kernel) -> Kernel:
    """`keep` with the origins of the equal kernel `other` added, statement by statement."""

    def merge(a: Any, b: Any) -> Any:
        if isinstance(a, tuple):
            if any(isinstance(x, Origin) for x in (*a, *b)):
                return unite(a, b)
            return tuple(merge(x, y) for x, y in zip(a, b))
        if not is_dataclass(a) or isinstance(a, (Index, DType, TensorType)):
            return a
        changed = {f.name: merge(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)}
        return replace(
            a, **{k: v for k, v in changed.items() if isinstance(v, tuple) or is_dataclass(v)}
        )  # type: ignore[type-var]

    return replace(keep, body=merge(keep.body, other.body))
