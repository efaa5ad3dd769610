"""Private buffers keep only the axes that more than one iteration needs.

A buffer that is written and read in the same iteration of the loops around it loses the axes indexed by
those loops; without axes left and stored once it becomes a bound scalar.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from minicompile.ir.index import Index, ix
from minicompile.ir.loop import Alloc, Bind, For, Kernel, Load, Name, Stmt, Store, dtype_of
from minicompile.ir.types import TensorType
from minicompile.ir.walk import rewrite, walk
from minicompile.lower.access import access

LOCAL_BYTES = 1 << 18  # a row buffer beyond this would not stay in L2 anyway


def shrink_buffers(kernel: Kernel) -> Kernel:
    """Every private (`@ arena`) buffer of the kernel as small as its uses allow."""
    for alloc in [s for s in kernel.body if isinstance(s, Alloc) and s.memory == "arena"]:
        kernel = _shrink(kernel, alloc)
    return kernel


def _shrink(kernel: Kernel, alloc: Alloc) -> Kernel:
    body = tuple(s for s in kernel.body if s is not alloc)
    loops = _common_loops(body, alloc.buf)
    if not loops:
        return kernel
    axis_of = _axes(body, alloc.buf, [loop.var for loop in loops])
    # Only loops whose axis is gone may be outside of the smaller buffer.
    depth = next((n for n, loop in enumerate(loops) if loop.var not in axis_of), len(loops))
    outside = [loop.var for loop in loops[:depth]]
    dropped = {axis_of[v] for v in outside}
    kept = [d for d, n in enumerate(alloc.type.dims) if d not in dropped and n > 1]
    type = TensorType(alloc.type.dtype, tuple(alloc.type.dims[d] for d in kept))
    if not outside or (kept and type.bytes > LOCAL_BYTES):
        return kernel
    small = replace(alloc, type=type, memory="local" if kept else "register")
    body = _reindex(body, alloc.buf, kept)
    body = _place(body, outside[-1], small)
    return replace(kernel, body=body)


def _common_loops(stmts: tuple[Stmt, ...], buf: str) -> list[For]:
    """The loops around every access of buf, outermost first."""
    users = [s for s in stmts if buf in {*access(s).reads, *access(s).writes}]
    if len(users) != 1 or not isinstance(users[0], For):
        return []
    return [users[0], *_common_loops(users[0].body, buf)]


def _axes(stmts: tuple[Stmt, ...], buf: str, loop_vars: list[str]) -> dict[str, int]:
    """Loop variable -> the axis of buf that every access indexes by exactly this variable."""
    indices = [
        n.index for n in walk(stmts) if getattr(n, "buf", None) == buf and hasattr(n, "index")
    ]
    found: dict[str, int] = {}
    for axis in range(len(indices[0])):
        terms = {i[axis] for i in indices}
        found.update({v: axis for v in loop_vars if terms == {ix(v)}})
    return found


def _reindex(stmts: tuple[Stmt, ...], buf: str, kept: list[int]) -> tuple[Stmt, ...]:
    def f(n: Any) -> Any:
        if getattr(n, "buf", None) == buf and hasattr(n, "index"):
            index: tuple[Index, ...] = n.index
            return replace(n, index=tuple(index[d] for d in kept))
        return n

    return rewrite(stmts, f)


def _place(stmts: tuple[Stmt, ...], var: str, alloc: Alloc) -> tuple[Stmt, ...]:
    """Declare the buffer at the top of loop `var`; a scalar stored once is bound instead."""

    def f(n: Any) -> Any:
        if isinstance(n, For) and n.var == var:
            stores = [s for s in walk(n.body) if isinstance(s, Store) and s.buf == alloc.buf]
            if alloc.memory == "register" and len(stores) == 1 and stores[0] in n.body:
                return replace(n, body=_bound(n.body, stores[0]))
            return replace(n, body=(alloc, *n.body))
        return n

    return rewrite(stmts, f)


def _bound(stmts: tuple[Stmt, ...], store: Store) -> tuple[Stmt, ...]:
    """The store becomes a Bind and every load of the scalar its name."""

    def f(n: Any) -> Any:
        if isinstance(n, Load) and n.buf == store.buf:
            return Name(n.buf, n.dtype)
        return n

    out: list[Stmt] = []
    for s in stmts:
        if s is store:
            value = rewrite(store.value, f)
            out.append(Bind(s.buf, value, dtype_of(value), s.origins))
        else:
            out.append(rewrite(s, f))
    return tuple(out)
