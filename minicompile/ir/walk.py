"""Walking and rewriting Loop IR: every statement, expression and index below a node."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from minicompile.ir.index import Index, substitute_index
from minicompile.ir.loop import (
    Accumulate,
    Alloc,
    Barrier,
    Bind,
    Call,
    Check,
    Const,
    Fold,
    For,
    If,
    IndexValue,
    Kernel,
    Load,
    Name,
    Param,
    Store,
)

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
