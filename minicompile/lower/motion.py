"""Transforms that move code: the order of loops, and what stands inside or outside of them."""

from __future__ import annotations

from dataclasses import replace

from minicompile.ir.loop import Accumulate, Bind, Check, For, Kernel, Load, Stmt
from minicompile.ir.walk import walk
from minicompile.lower.analysis import (
    Body,
    accesses,
    carried,
    chain,
    depends,
    find,
    loops_of,
    varying,
    written,
)
from minicompile.lower.transforms import at, need, nest


def reorder(k: Kernel, order: list[str]) -> Kernel:
    """The perfectly nested loops named in `order` are nested in this order.

    Law: legal if every loop is free of carried dependences, accumulation apart (it commutes).
    """
    first = next(x.var for x in loops_of(k) if x.var in order)

    def f(outermost: For) -> Body:
        loops, _ = chain(outermost)
        loops = loops[: len(order)]
        need({x.var for x in loops} == set(order), k, f"{order} are not perfectly nested")
        for x in loops:
            met = commutes(x)
            need(not met, k, f"{x.var} cannot move: iterations meet in {met}")
        by_var = {x.var: x for x in loops}
        return nest((by_var[v] for v in order), loops[-1].body)

    return k if order == _order(k, first, len(order)) else at(k, first, f)


def _order(k: Kernel, first: str, n: int) -> list[str]:
    return [x.var for x in chain(find(k, first))[0][:n]]


def commutes(loop: For) -> str:
    """Like `carried`, but accumulating by one operation, and nothing else, into one place is allowed."""
    modes: dict[str, set[str]] = {}
    for a in accesses(loop.body):
        modes.setdefault(a.buf, set()).add(a.mode)
    for s in walk(loop.body):
        if isinstance(s, Accumulate):
            modes[s.buf].add(s.op)
    only_added = {buf for buf, used in modes.items() if "a" in used and len(used) == 2}

    def strip(stmts: Body) -> Body:
        kept = (s for s in stmts if getattr(s, "buf", None) not in only_added)
        return tuple(replace(s, body=strip(s.body)) if isinstance(s, For) else s for s in kept)

    return carried(replace(loop, body=strip(loop.body)))


# ---------------------------------------------------------------------------------- moving code


def hoist(k: Kernel, var: str) -> Kernel:
    """Leading statements of a loop that do not depend on it (binds, checks) move in front of it.

    Law: the loop runs at least once, and nothing that these statements read is written in it.
    """

    def f(loop: For) -> Body:
        moved: list[Stmt] = []
        rest = list(loop.body)
        changed, names = written(loop.body), varying(loop)
        while rest and isinstance(rest[0], (Bind, Check)):
            reads = {n.buf for n in walk(rest[0]) if isinstance(n, Load)}
            if depends(rest[0], names) or reads & changed or not loop.extent:
                break
            moved.append(rest.pop(0))
        return (*moved, replace(loop, body=tuple(rest))) if rest else (loop,)

    return at(k, var, f)


def sink(k: Kernel, var: str) -> Kernel:
    """The inverse of hoist: binds between perfectly nested loops move into the innermost body.

        for i: s: f32 = rsqrt(v[i])           for i: for j:
               for j:                     ->      acc[] = 0.0; for k: acc[] += ...
                   acc[] = 0.0; for k: ...        s: f32 = rsqrt(v[i])
                   y[i, j] = acc[] * s            y[i, j] = acc[] * s

    A bind goes in front of the first statement that uses it, or to the start.  Law: nothing that it
    reads is written below.
    """

    def f(loop: For) -> Body:
        binds = tuple(s for s in loop.body if isinstance(s, Bind))
        rest = tuple(s for s in loop.body if not isinstance(s, Bind))
        if not (binds and len(rest) == 1 and isinstance(rest[0], For)):
            return (loop,)
        reads = {n.buf for n in walk(binds) if isinstance(n, Load)}
        if reads & written(rest):
            return (loop,)
        return (replace(loop, body=(_sunk(rest[0], binds),)),)

    loop = find(k, var)
    inner = [s.var for s in loop.body if isinstance(s, For)]
    return at(sink(k, inner[0]) if len(inner) == 1 else k, var, f)


def _sunk(loop: For, binds: Body) -> For:
    if len(loop.body) == 1 and isinstance(loop.body[0], For):
        return replace(loop, body=(_sunk(loop.body[0], binds),))
    body = list(loop.body)
    for b in reversed(binds):
        assert isinstance(b, Bind)
        users = [n for n, s in enumerate(body) if depends(s, {b.name})]
        body.insert(users[0] if users else 0, b)
    return replace(loop, body=tuple(body))
