"""Loop-invariant code motion: what does not change inside a loop is computed before it.

    for i1: j: i64 = ids[i0]; check(j, 10); y[i0, i1] = w[j, i1]
    ->      j: i64 = ids[i0]; check(j, 10)
            for i1: y[i0, i1] = w[j, i1]

Only binds and checks move, and only out of loops that run at least once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from minicompile.ir.index import ix
from minicompile.ir.loop import Bind, Check, Fold, For, Kernel, Load, Name, Stmt
from minicompile.ir.walk import rewrite, substitute, walk
from minicompile.lower.access import access


def hoist_invariants(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_without_repeats(_hoist(kernel.body), {}))


def _hoist(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in stmts:
        if isinstance(s, For):
            invariant, body = _split(s.var, _hoist(s.body))
            out += [*invariant, replace(s, body=body)]
        else:
            out.append(s)
    return tuple(out)


def _split(var: str, body: tuple[Stmt, ...]) -> tuple[list[Stmt], tuple[Stmt, ...]]:
    """(statements that do not depend on `var`, the others)"""
    stay = list(body)
    moved: list[Stmt] = []
    for s in body:
        if not isinstance(s, (Bind, Check)):
            continue
        needs = access(s)
        written = access(tuple(x for x in stay if x is not s)).writes.keys()
        if var not in needs.reads and not written & (needs.reads.keys() | needs.writes.keys()):
            moved.append(s)
            stay.remove(s)
    return moved, tuple(stay)


def _without_repeats(stmts: tuple[Stmt, ...], known: dict[str, Name]) -> tuple[Stmt, ...]:
    """Bind what was bound before only once. Expressions that load are left alone: memory may change.

    `known`: what is bound already, by the `repr` of its value, which tells 0.0, -0.0, 0 and False apart.
    """
    known, out = dict(known), list[Stmt]()
    same: dict[str, Name] = {}

    def rename(n: Any) -> Any:
        return same.get(n.name, n) if isinstance(n, Name) else n

    for s in stmts:
        if same:
            indices = {old: ix(new.name) for old, new in same.items()}
            s = substitute(rewrite(s, rename), indices)
        if isinstance(s, For):
            s = replace(s, body=_without_repeats(s.body, known))
        elif isinstance(s, Bind) and not any(isinstance(n, (Load, Fold)) for n in walk(s.value)):
            value = repr(s.value)
            if value in known:
                same[s.name] = known[value]
                continue
            known[value] = Name(s.name, s.dtype)
        out.append(s)
    return tuple(out)
