"""Loop-invariant code motion: what does not change inside a loop is computed before it.

    for i1: j: i64 = ids[i0]; check(j, 10); y[i0, i1] = w[j, i1]
    ->      j: i64 = ids[i0]; check(j, 10)
            for i1: y[i0, i1] = w[j, i1]

Only binds and checks move, and only out of loops that run at least once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from minicompile.ir.loop import Bind, Check, Expr, Fold, For, Kernel, Load, Name, Stmt
from minicompile.ir.walk import rewrite, walk
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


def _without_repeats(stmts: tuple[Stmt, ...], known: dict[Expr, Name]) -> tuple[Stmt, ...]:
    """Bind what was bound before only once. Expressions that load are left alone: memory may change."""
    known, out = dict(known), list[Stmt]()
    same: dict[str, Name] = {}

    def rename(n: Any) -> Any:
        return same.get(n.name, n) if isinstance(n, Name) else n

    for s in stmts:
        s = rewrite(s, rename) if same else s
        if isinstance(s, For):
            s = replace(s, body=_without_repeats(s.body, known))
        elif isinstance(s, Bind) and not any(isinstance(n, (Load, Fold)) for n in walk(s.value)):
            if s.value in known:
                same[s.name] = known[s.value]
                continue
            known[s.value] = Name(s.name, s.dtype)
        out.append(s)
    return tuple(out)
