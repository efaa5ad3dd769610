"""Ranges of indices, and when the iterations of a loop are independent.

Both are conservative: an unknown range is None, and a dependence that cannot be excluded counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from minicompile.ir.index import Atom, Index, Quotient, add, ix, times, variables
from minicompile.ir.loop import Accumulate, Alloc, Bind, Fold, For, Load, Store
from minicompile.ir.walk import walk

Range = tuple[int, int]  # smallest and largest value
Fact = tuple[int, Index, int]  # lo <= index < hi
Ranges = Mapping[str, Range | None]


def trips(loop: For) -> int:
    """How often the body runs: the extent, or the active lanes of a vector loop."""
    return loop.extent if loop.active is None else min(loop.active, loop.extent)


def loop_range(loop: For) -> Range:
    """The values of the variable of a loop that runs at least once."""
    top = (trips(loop) - 1) * loop.step
    return 0, top if loop.last is None else min(top, loop.last)


def interval(index: Index, ranges: Ranges, facts: Sequence[Fact] = ()) -> Range | None:
    """The values `index` can take, where `facts` hold. None if unknown.

    A fact lo <= L < hi bounds every index with n*index = k*L + rest, where the range of rest is known.
    """
    lo = hi = index.const
    known = True
    for atom, c in index.terms:
        span = _atom(atom, ranges, facts)
        if span is None:
            known = False
            break
        lo, hi = lo + min(c * span[0], c * span[1]), hi + max(c * span[0], c * span[1])
    found: Range | None = (lo, hi) if known else None
    for fact in facts:
        other = _by_fact(index, fact, ranges)
        if other is not None:
            found = other if found is None else (max(found[0], other[0]), min(found[1], other[1]))
    return found


def _atom(atom: Atom, ranges: Ranges, facts: Sequence[Fact]) -> Range | None:
    if isinstance(atom, str):
        return ranges.get(atom)
    inner = interval(atom.index, ranges, facts)
    if inner is None:
        return (0, atom.by - 1) if atom.mod else None
    low, high = inner[0] // atom.by, inner[1] // atom.by
    if not atom.mod:
        return low, high
    return (inner[0] % atom.by, inner[1] % atom.by) if low == high else (0, atom.by - 1)


def _by_fact(index: Index, fact: Fact, ranges: Ranges) -> Range | None:
    """The range of `index` from n*index = k*L + rest, where n and k make a common atom cancel."""
    lo, form, hi = fact
    ours = dict(index.terms)
    shared = [(ours[a], c) for a, c in form.terms if ours.get(a) and c]
    if not shared:
        return None
    (a, b), *_ = shared
    n, k = abs(b) // gcd(a, b), a * (1 if b > 0 else -1) // gcd(a, b)
    rest = interval(opened(add(times(index, n), form, -k)), ranges)
    if rest is None:
        return None
    ends = (k * lo, k * (hi - 1))
    return -(-(rest[0] + min(ends)) // n), (rest[1] + max(ends)) // n


def opened(index: Index) -> Index:
    """The index with ``x // n * (n*c)`` written as ``x * c - x % n * c``, so that x can cancel."""
    for atom, c in index.terms:
        if isinstance(atom, Quotient) and not atom.mod and c % atom.by == 0:
            rest = Index(tuple(t for t in index.terms if t[0] != atom), index.const)
            remainder = ix(Quotient(atom.index, atom.by, mod=True))
            scale = c // atom.by
            return opened(add(add(rest, atom.index, scale), remainder, -scale))
    return index


def opposite(conds: Sequence[Fact], ranges: Ranges, facts: Sequence[Fact] = ()) -> list[Fact]:
    """What holds where `conds` do not: the rest of the range, if it lies on one side of a single condition."""
    if len(conds) != 1:
        return []
    ((lo, index, hi),) = conds
    span = interval(index, ranges, facts)
    if span is None:
        return []
    if span[0] >= lo:
        return [(hi, index, span[1] + 1)]
    return [(span[0], index, lo)] if span[1] < hi else []


def joined(index: Index) -> Index:
    """The index with ``x // n * (n*c) + x % n * c`` written as ``x * c``."""
    coefs = dict(index.terms)
    for atom, c in index.terms:
        if isinstance(atom, Quotient) and atom.mod:
            whole = Quotient(atom.index, atom.by)
            if coefs.get(whole) == c * atom.by:
                rest = tuple(t for t in index.terms if t[0] not in (atom, whole))
                return joined(add(Index(rest, index.const), atom.index, c))
    return index


# ---------------------------------------------------------------------------------- dependence


@dataclass
class Accesses:
    """What a loop does to one buffer from outside it."""

    stores: list[tuple[Index, ...]] = field(default_factory=list)
    accumulates: list[tuple[Index, ...]] = field(default_factory=list)
    loads: list[tuple[Index, ...]] = field(default_factory=list)
    combines: set[str] = field(default_factory=set)
    folded: bool = False

    @property
    def written(self) -> bool:
        return bool(self.stores or self.accumulates)

    @property
    def only_accumulates(self) -> bool:
        """Accumulates of one op, in any order and number: a reduction."""
        return not (self.stores or self.loads or self.folded) and len(self.combines) == 1


def accesses(loop: For) -> dict[str, Accesses]:
    """The accesses in the loop to each buffer that is declared outside."""
    found: dict[str, Accesses] = {}
    own: set[str] = set()
    for n in walk(loop.body):
        if isinstance(n, Alloc):
            own.add(n.buf)
        elif isinstance(n, (Store, Accumulate, Load, Fold)):
            at = found.setdefault(n.buf, Accesses())
            if isinstance(n, Store):
                at.stores.append(n.index)
            elif isinstance(n, Accumulate):
                at.accumulates.append(n.index)
                at.combines.add(n.op)
            elif isinstance(n, Load):
                at.loads.append(n.index)
            else:
                at.folded = True
    return {buf: at for buf, at in found.items() if buf not in own}


def inner_ranges(loop: For) -> dict[str, Range | None]:
    """The names that change within one iteration; None where the range is unknown."""
    inner: dict[str, Range | None] = {}
    for n in walk(loop.body):
        if isinstance(n, For) and trips(n) > 0:
            inner[n.var] = loop_range(n)
        elif isinstance(n, Bind):
            inner[n.name] = None
    return inner


def conflict(loop: For, at: Accesses, inner: Ranges, strides: Sequence[int] = ()) -> bool:
    """Might two iterations touch the same element, and one of them write it?

    `strides` of the buffer, if known, let indices with // and % be compared as one position.  Iterations
    of a shifted loop overlap, but then they store the same values: that is no conflict.
    """
    if not at.written or trips(loop) <= 1:
        return False
    if at.folded or (loop.last is not None and (at.accumulates or at.loads)):
        return True
    indices = at.stores + at.accumulates + at.loads
    columns: list[list[Index]] = [list(column) for column in zip(*indices)]
    if strides and all(len(i) == len(strides) for i in indices):
        columns.append([joined(_position(i, strides)) for i in indices])
    return not any(_separates(loop, column, inner) for column in columns)


def _position(index: tuple[Index, ...], strides: Sequence[int]) -> Index:
    total = Index()
    for i, step in zip(index, strides):
        total = add(total, i, step)
    return total


def _separates(loop: For, column: Iterable[Index], inner: Ranges) -> bool:
    """Do the values of these indices in different iterations of the loop never meet?

    Law: c*v + r and c*v' + r' differ for v != v' when |r - r'| < |c| * step.
    """
    spans, outer, coefs = [], set(), set()
    for index in column:
        terms = dict(index.terms)
        coefs.add(terms.pop(loop.var, 0))
        varying, fixed = Index((), index.const), Index()
        for atom, c in terms.items():
            names = {atom} if isinstance(atom, str) else variables(ix(atom))
            if loop.var in names:
                return False
            if names & inner.keys():
                varying = add(varying, ix(atom), c)
            else:
                fixed = add(fixed, ix(atom), c)
        outer.add(frozenset(fixed.terms))
        spans.append(interval(varying, inner))
    known = [s for s in spans if s is not None]
    if len(coefs) != 1 or len(outer) != 1 or len(known) != len(spans):
        return False
    width = max(hi for _, hi in known) - min(lo for lo, _ in known)
    return width < abs(coefs.pop()) * loop.step
