"""What statements read and write: the facts that decide whether loops may be merged or moved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minicompile.ir.index import Index, variables
from minicompile.ir.loop import Accumulate, Alloc, Bind, Fold, For, Load, Name, Stmt, Store
from minicompile.ir.walk import walk

Indices = tuple[Index, ...]


@dataclass
class Access:
    """Indices at which each buffer is read and written; scalars count as buffers without index.

    `scattered`: some store goes to a loaded index, so which element it writes is unknown.
    """

    reads: dict[str, list[Indices]] = field(default_factory=dict)
    writes: dict[str, list[Indices]] = field(default_factory=dict)
    scattered: bool = False

    def read(self, name: str, index: Indices = ()) -> None:
        self.reads.setdefault(name, []).append(index)

    def write(self, name: str, index: Indices = ()) -> None:
        self.writes.setdefault(name, []).append(index)


def access(stmts: Any) -> Access:
    """Everything below `stmts` (a statement or a tuple of them)."""
    found = Access()
    for s in walk(stmts):
        if isinstance(s, Alloc):
            found.write(s.buf)
        elif isinstance(s, Bind):
            found.write(s.name)
        elif isinstance(s, Store):
            found.write(s.buf, s.index)
        elif isinstance(s, Accumulate):
            found.write(s.buf, s.index)
            found.read(s.buf, s.index)
        elif isinstance(s, Load):
            found.read(s.buf, s.index)
        elif isinstance(s, Fold):
            found.read(s.buf)
        elif isinstance(s, Name):
            found.read(s.name)
        elif isinstance(s, Index):
            for name in variables(s):
                found.read(name)
    for s in walk(stmts):
        if isinstance(s, (Store, Accumulate)):
            used = {v for i in s.index for v in variables(i)}
            found.scattered |= any(v in found.writes for v in used)
    return found


def depends(later: Access, earlier: Access) -> bool:
    """May `later` not be moved before `earlier`? (It reads or writes what the other writes, or ...)"""
    w = earlier.writes.keys()
    return bool(
        w & later.reads.keys()
        or w & later.writes.keys()
        or earlier.reads.keys() & later.writes.keys()
    )


def shared_buffers(a: Access, b: Access) -> list[str]:
    """Names that one of them writes and the other reads or writes."""
    touched_b = b.reads.keys() | b.writes.keys()
    touched_a = a.reads.keys() | a.writes.keys()
    names = [n for n in a.writes if n in touched_b]
    return names + [n for n in b.writes if n in touched_a and n not in names]


def touches(x: Access, name: str) -> list[Indices]:
    return x.reads.get(name, []) + x.writes.get(name, [])


def perfect_loops(s: Stmt) -> list[For]:
    """The loops from s inwards, as long as each is the only statement of the one around it."""
    loops: list[For] = []
    while isinstance(s, For):
        loops.append(s)
        if len(s.body) != 1:
            break
        s = s.body[0]
    return loops
