"""Small, pure loop transforms: Kernel -> Kernel. A schedule is a sequence of them.

Each names the loop it changes by its variable, states its law, and raises CompileError MC030 where the
law does not hold.  Loop variables must be distinct within the kernel (see `distinct`), except that the
loops a transform has copied keep their variables in every copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from minicompile.errors import CompileError
from minicompile.ir.index import ix
from minicompile.ir.loop import Accumulate, Alloc, Bind, Fold, For, Kernel, Load, Name, Stmt, Store
from minicompile.ir.problems import bad_name
from minicompile.ir.walk import rewrite, substitute
from minicompile.lower.analysis import (
    Body,
    carried,
    ceil_div,
    defined,
    find,
    names_of,
    repeatable,
)
from minicompile.lower.machine import LANES


def need(ok: bool, k: Kernel, message: str) -> None:
    """The legality check of a transform."""
    if not ok:
        raise CompileError("MC030", f"kernel {k.name}: {message}")


def at(k: Kernel, var: str, f: Callable[[For], Body]) -> Kernel:
    """Replace the loop `var` by the statements f(loop)."""
    find(k, var)

    def go(stmts: Body) -> Body:
        out: list[Stmt] = []
        for s in stmts:
            if isinstance(s, For) and s.var == var:
                out += f(s)
            elif isinstance(s, For):
                out.append(replace(s, body=go(s.body)))
            else:
                out.append(s)
        return tuple(out)

    return replace(k, body=go(k.body))


def nest(loops: Iterable[For], body: Body) -> Body:
    """The body inside copies of these loops, the first outermost."""
    for loop in reversed(tuple(loops)):
        body = (replace(loop, body=body),)
    return body


def fresh(k: Kernel, base: str) -> str:
    """`base`, or base_2, base_3, ... if the kernel already has that name."""
    taken, name, n = names_of(k), base, 1
    while name in taken or bad_name(name):
        n += 1
        name = f"{base}_{n}"
    return name


# ---------------------------------------------------------------------------------- names


def rename(stmts: Body, new: dict[str, str]) -> Body:
    """Give loop variables, bound names and buffers other names, where introduced and where used."""

    def one(n: Any) -> Any:
        if isinstance(n, For):
            return replace(n, var=new.get(n.var, n.var))
        if isinstance(n, (Alloc, Store, Accumulate, Load, Fold)):
            return replace(n, buf=new.get(n.buf, n.buf))
        if isinstance(n, (Bind, Name)):
            return replace(n, name=new.get(n.name, n.name))
        return n

    return rewrite(substitute(stmts, {old: ix(name) for old, name in new.items()}), one)


def distinct(k: Kernel) -> Kernel:
    """Every serial loop gets a variable of its own: loops one after the other may share one before."""
    taken = names_of(k)
    seen: set[str] = set()

    def go(stmts: Body) -> Body:
        out: list[Stmt] = []
        for s in stmts:
            if isinstance(s, For):
                var, n = s.var, 1
                while (var in seen and s.kind == "serial") or (n > 1 and var in taken):
                    n += 1
                    var = f"{s.var}_{n}"
                seen.add(var)
                if var != s.var:
                    s = replace(s, var=var, body=substitute(s.body, {s.var: ix(var)}))
                s = replace(s, body=go(s.body))
            out.append(s)
        return tuple(out)

    return replace(k, body=go(k.body))


def drop_unit(k: Kernel) -> Kernel:
    """Serial loops of one iteration are replaced by their bodies."""

    def go(stmts: Body) -> Body:
        out: list[Stmt] = []
        for s in stmts:
            if isinstance(s, For):
                s = replace(s, body=go(s.body))
                if s.kind == "serial" and s.extent == 1:
                    first = 0 if s.last is None else min(0, s.last)
                    out += substitute(s.body, {s.var: ix(const=first)})
                    continue
            out.append(s)
        return tuple(out)

    return replace(k, body=go(k.body))


# ---------------------------------------------------------------------------------- splitting


def cut(k: Kernel, var: str, at_: int) -> Kernel:
    """``for v < n`` becomes ``for v < at`` and then a copy ``for v_t``: v = at + v_t, v_t < n - at.

    Law: the same iterations in the same order. The copy's names end in _t.
    """
    loop = find(k, var)
    need(loop.step == 1 and loop.last is None, k, f"loop {var} is shifted: cut it first")
    if at_ <= 0 or at_ >= loop.extent:
        return k
    new: dict[str, str] = {}
    for name in defined((loop,)):
        new[name] = fresh(replace(k, body=k.body + _reserve(new)), f"{name}_t")

    def f(loop: For) -> Body:
        (tail,) = rename((replace(loop, extent=loop.extent - at_),), new)
        assert isinstance(tail, For)
        moved = substitute(tail.body, {tail.var: ix(tail.var, const=at_)})
        return replace(loop, extent=at_), replace(tail, body=moved)

    return at(k, var, f)


def _reserve(new: dict[str, str]) -> Body:
    return tuple(For(name, 0, "serial", ()) for name in new.values())


def split(k: Kernel, var: str, by: int, outer: str, inner: str) -> Kernel:
    """``for v < n`` becomes ``for outer < n/by: for inner < by``, v = outer*by + inner.

    Law: the same iterations in the same order; `by` divides n, so no bounds are ever checked.
    """

    def f(loop: For) -> Body:
        need(loop.extent % by == 0, k, f"{by} does not divide {loop.extent} of {var}: cut first")
        need(loop.last is None and loop.active is None, k, f"{var} is shifted or masked already")
        body = substitute(loop.body, {var: ix((outer, by), inner)})
        return (For(outer, loop.extent // by, loop.kind, (For(inner, by, loop.kind, body),)),)

    return at(k, var, f)


def shift(k: Kernel, var: str, by: int, outer: str, inner: str) -> Kernel:
    """`split`, for any n >= by: the last block is moved back to end at n, and overlaps the one before.

    Law: iterations may run twice, so they must only store, and never read what they store.
    """
    loop = find(k, var)
    if loop.extent % by == 0:
        return split(k, var, by, outer, inner)

    def f(loop: For) -> Body:
        need(loop.extent >= by, k, f"{var} has fewer than {by} iterations")
        need(repeatable(loop), k, f"iterations of {var} may not run twice")
        body = substitute(loop.body, {var: ix(outer, inner)})
        block = For(inner, by, loop.kind, body)
        blocks, last = ceil_div(loop.extent, by), loop.extent - by
        return (For(outer, blocks, loop.kind, (block,), step=by, last=last),)

    return at(k, var, f)


def pad_vector(k: Kernel, var: str) -> Kernel:
    """A loop of at most 16 iterations becomes one vector: the lanes beyond do not load or store."""

    def f(loop: For) -> Body:
        need(loop.extent <= LANES, k, f"{var} has more than {LANES} iterations")
        active = None if loop.extent == LANES else loop.extent
        return (replace(loop, extent=LANES, kind="vector", active=active),)

    return at(k, var, f)


def mark(k: Kernel, var: str, kind: str) -> Kernel:
    """serial -> unroll, vector or parallel. Law (vector, parallel): no dependence carried by the loop."""

    def f(loop: For) -> Body:
        if kind in ("vector", "parallel"):
            met = carried(loop)
            need(not met, k, f"{var} cannot be {kind}: iterations meet in {met}")
        return (replace(loop, kind=kind),)

    return at(k, var, f)
