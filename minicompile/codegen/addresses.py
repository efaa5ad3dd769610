"""Indices as source text: flat element numbers, and how they step along the vector variable."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.ir.index import Index, Quotient, add, times, variables


@dataclass(frozen=True)
class Vector:
    """The vector loop around a statement: its variable, the active lanes, and their mask's name."""

    var: str
    active: int
    mask: str = ""


def flat(index: tuple[Index, ...], strides: tuple[int, ...]) -> Index:
    """The element number of a multi-dimensional index."""
    offset = Index()
    for i, stride in zip(index, strides):
        offset = add(offset, times(i, stride))
    return offset


def step(index: Index, vector: Vector | None, lanes: set[str]) -> int | None:
    """How far the index moves per lane: 0 not at all, None if not evenly (`lanes`: vector names)."""
    found = 0
    for atom, coef in index.terms:
        if isinstance(atom, Quotient):
            if varies(atom.index, vector, lanes):
                return None
        elif vector is not None and atom == vector.var:
            found += coef
        elif atom in lanes:
            return None
    return found


def varies(index: Index, vector: Vector | None, lanes: set[str]) -> bool:
    """Does the index differ from lane to lane?"""
    names = variables(index)
    return bool(names & lanes) or (vector is not None and vector.var in names)


def without(index: Index, var: str) -> Index:
    return Index(tuple(t for t in index.terms if t[0] != var), index.const)


def scalar_text(index: Index) -> str:
    """``i * 64 + j - 1``, of loop counters and bound scalars."""
    terms = [_times(_atom_text(atom), coef) for atom, coef in index.terms]
    return join(terms, index.const)


def join(terms: list[str], const: int) -> str:
    text = " + ".join(terms).replace("+ -", "- ")
    if not terms:
        return str(const)
    if const:
        text += f" + {const}" if const > 0 else f" - {-const}"
    return text


def _times(atom: str, coef: int) -> str:
    if coef == 1:
        return atom
    return f"-{atom}" if coef == -1 else f"{atom} * {coef}" if coef > 0 else f"-{atom} * {-coef}"


def _atom_text(atom: str | Quotient) -> str:
    if isinstance(atom, str):
        return atom
    return quotient_text(scalar_text(atom.index), atom)


def quotient_text(inner: str, q: Quotient) -> str:
    inner = inner if inner.isidentifier() else f"({inner})"
    return f"({inner} {'%' if q.mod else '//'} {q.by})"


def vector_text(index: Index, vector: Vector | None, lanes: set[str]) -> str:
    """The same as 16 numbers (i64): the terms that vary as vectors, the others as one scalar."""
    scalar, moving, terms = Index((), index.const), 0, []
    for atom, coef in index.terms:
        if vector is not None and atom == vector.var:
            moving += coef
        elif isinstance(atom, Quotient) and varies(atom.index, vector, lanes):
            inner = vector_text(atom.index, vector, lanes)
            terms.append(_times(quotient_text(inner, atom), coef))
        elif atom in lanes:
            terms.append(_times(str(atom), coef))
        else:
            scalar = add(scalar, Index(((atom, coef),)))
    if moving or not terms:
        return join([f"lane_index({scalar_text(scalar)}, {moving})", *terms], 0)
    rest = [_times(_atom_text(a), c) for a, c in scalar.terms]
    return join([*terms, *rest], scalar.const)
