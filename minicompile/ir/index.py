"""Affine indices: where a loop nest reads and writes, as data.

    index := INT + INT * atom + ...          atom := VAR | NAME | (index) // INT | (index) % INT

A split is a substitution, and whether a load is a vector load, a broadcast or a strided load is read off
the coefficient of the vector variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias, Union


@dataclass(frozen=True)
class Index:
    """``const + sum(coef * atom)``; atoms are loop variables, bound i64 names, or Quotients."""

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0


@dataclass(frozen=True)
class Quotient:
    """``(index) // by`` or, with mod=True, ``(index) % by``: from reshapes no split could undo."""

    index: Index
    by: int
    mod: bool = False


Atom: TypeAlias = Union[str, Quotient]


# ---------------------------------------------------------------------------------- index algebra


def ix(*terms: Atom | tuple[Atom, int], const: int = 0) -> Index:
    """``ix("i", ("j", 4), const=1)`` is i + 4*j + 1."""
    return Index(tuple((t, 1) if isinstance(t, (str, Quotient)) else t for t in terms), const)


def add(a: Index, b: Index, scale: int = 1) -> Index:
    """a + scale * b, like terms collected, zero terms dropped, order of first use kept."""
    coefs: dict[Atom, int] = dict(a.terms)
    for atom, c in b.terms:
        coefs[atom] = coefs.get(atom, 0) + c * scale
    return Index(tuple((t, c) for t, c in coefs.items() if c), a.const + b.const * scale)


def times(a: Index, n: int) -> Index:
    return add(Index(), a, n)


def bounds(a: Index, extents: dict[str, int]) -> tuple[int, int] | None:
    """The smallest and largest value, when variables v run over 0 ... extents[v]-1; None if unknown."""
    lo = hi = a.const
    for atom, c in a.terms:
        if isinstance(atom, Quotient):
            inner = bounds(atom.index, extents)
            if atom.mod:
                top = atom.by - 1
                low = 0
            elif inner is not None:
                low, top = inner[0] // atom.by, inner[1] // atom.by
            else:
                return None
        elif atom in extents:
            low, top = 0, extents[atom] - 1
        else:
            return None
        lo, hi = lo + min(c * low, c * top), hi + max(c * low, c * top)
    return lo, hi


def divide(a: Index, by: int, extents: dict[str, int]) -> tuple[Index, Index]:
    """(a // by, a % by), as affine as the ranges of the variables allow.

    Law: (by*q + r) // by = q and (by*q + r) % by = r whenever 0 <= r < by.
    """
    if by == 1:
        return a, Index()
    # 5*i // 4 is i + (i // 4): the multiples of `by` leave each term, and what is left may be small
    whole = Index(tuple((t, c // by) for t, c in a.terms if c // by), a.const // by)
    rest = Index(tuple((t, c % by) for t, c in a.terms if c % by), a.const % by)
    span = bounds(rest, extents)
    if not rest.terms or (span is not None and span[0] >= 0 and span[1] < by):
        return whole, rest
    whole = Index(tuple((t, c // by) for t, c in a.terms if c % by == 0), a.const // by)
    rest = Index(tuple((t, c) for t, c in a.terms if c % by), a.const % by)
    return add(whole, ix(Quotient(rest, by))), ix(Quotient(rest, by, mod=True))


def substitute_index(index: Index, env: dict[str, Index]) -> Index:
    out = Index((), index.const)
    for atom, c in index.terms:
        if isinstance(atom, Quotient):
            atom = replace(atom, index=substitute_index(atom.index, env))
            out = add(out, ix(atom), c)
        else:
            out = add(out, env.get(atom, ix(atom)), c)
    return out


def variables(index: Index) -> set[str]:
    """The loop variables and bound names an index reads."""
    found: set[str] = set()
    for atom, _ in index.terms:
        found |= variables(atom.index) if isinstance(atom, Quotient) else {atom}
    return found
