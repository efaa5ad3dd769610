"""Expressions and indices of the Loop IR -> text, with as few parentheses as Python's grammar allows."""

from __future__ import annotations

from collections.abc import Collection

from minicompile.ir.graph_text import float_text
from minicompile.ir.index import Atom, Index, Quotient
from minicompile.ir.loop import Call, Const, Expr, Fold, If, IndexValue, Load, Name, dtype_of
from minicompile.ir.optable import OPS, scalar_dtype
from minicompile.ir.types import DType

# Python's binding strength; an operand needs parentheses when it binds less than its place asks.
TERNARY, COMPARE, UNARY, POWER, ATOM = 1, 6, 13, 14, 16
BINDING = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), COMPARE),
    "|": 7,
    "^": 8,
    "&": 9,
    "<<": 10,
    ">>": 10,
    "+": 11,
    "-": 11,
    "*": 12,
    "/": 12,
    "//": 12,
    "%": 12,
    "**": POWER,
}


def expr_text(e: Expr, expected: DType | None, plain: Collection[str]) -> str:
    """The text of `e`. `expected` is the dtype its place asks for, `plain` the 0-d registers."""
    return _Printer(plain).expr(e, expected)[0]


def constant_dtype(arguments: list[DType | None]) -> DType | None:
    """The dtype of plain literals among the arguments of an op: that of the last other argument.

    `arguments` has None for each literal.  (The last, because a condition comes first.)
    """
    return next((d for d in reversed(arguments) if d is not None), None)


def infers(e: Call) -> bool:
    """Does the type rule of the op give the dtype of the call?"""
    try:
        return scalar_dtype(e.op, *map(dtype_of, e.args)) is e.dtype
    except (KeyError, TypeError):
        return False


class _Printer:
    """Every method returns (text, binding strength)."""

    def __init__(self, plain: Collection[str]) -> None:
        self.plain = plain

    def expr(self, e: Expr, expected: DType | None = None) -> tuple[str, int]:
        match e:
            case Const():
                return self._const(e, expected)
            case Name(name):
                return name, ATOM
            case Load(buf, index):
                plain = buf in self.plain and not index
                return (buf if plain else f"{buf}[{index_list(index)}]"), ATOM
            case IndexValue(index):
                return f"index({index_text(index)})", ATOM
            case Fold(op, buf):
                return f"fold_{op}({buf})", ATOM
            case If():
                return self._if(e, expected)
            case Call():
                return self._call(e)
        raise TypeError(f"{e!r} is not an expression of the Loop IR")

    def _const(self, e: Const, expected: DType | None) -> tuple[str, int]:
        text = float_text(e.value) if isinstance(e.value, float) else repr(e.value)
        if e.dtype is not expected:
            return f"{e.dtype}({text})", ATOM
        return text, UNARY if text.startswith("-") else ATOM

    def _call(self, e: Call) -> tuple[str, int]:
        dtypes = [None if isinstance(a, Const) else dtype_of(a) for a in e.args]
        common = constant_dtype(dtypes)
        args = [self.expr(a, common if isinstance(a, Const) else None) for a in e.args]
        known = infers(e)
        if known and len(args) == 2 and OPS[e.op].infix:
            return self._infix(OPS[e.op].infix, args)
        texts = [text for text, _ in args] + ([] if known else [e.dtype.name])
        return f"{e.op}({', '.join(texts)})", ATOM

    def _infix(self, operator: str, args: list[tuple[str, int]]) -> tuple[str, int]:
        binding = BINDING[operator]
        left = right = binding + 1
        if operator == "**":  # groups to the right, and takes a sign on its right
            right = UNARY
        elif binding != COMPARE:  # groups to the left; comparisons would chain
            left = binding
        text = f"{_wrap(args[0], left)} {operator} {_wrap(args[1], right)}"
        return text, binding

    def _if(self, e: If, expected: DType | None) -> tuple[str, int]:
        arms = (e.then, e.other)
        dtypes = [None if isinstance(a, Const) else dtype_of(a) for a in arms]
        dtype = constant_dtype(dtypes) or expected
        then, other = (self.expr(a, dtype if isinstance(a, Const) else expected) for a in arms)
        conds = [f"{lo} <= {index_text(i)} < {hi}" for lo, i, hi in e.conds]
        test = " and ".join(conds) or "True"
        return f"{_wrap(then, TERNARY + 1)} if {test} else {other[0]}", TERNARY


def _wrap(operand: tuple[str, int], need: int) -> str:
    text, binding = operand
    return text if binding >= need else f"({text})"


# ---------------------------------------------------------------------------------- indices


def index_list(index: tuple[Index, ...]) -> str:
    """What stands between the brackets; ``()`` for the only element of 0-d memory."""
    return ", ".join(map(index_text, index)) or "()"


def index_text(index: Index) -> str:
    """``i0 * 6 + i1 - 1``; the constant comes first where that saves a leading minus: ``27 - i0``."""
    const_first = index.const != 0 and bool(index.terms) and index.terms[0][1] < 0
    text = str(index.const) if const_first else ""
    for atom, coef in index.terms:
        text += _term(atom, coef, first=not text)
    if index.const and not const_first and text:
        return f"{text} {'-' if index.const < 0 else '+'} {abs(index.const)}"
    return text or str(index.const)


def _term(atom: Atom, coef: int, first: bool) -> str:
    name = atom if isinstance(atom, str) else _quotient_text(atom)
    if first and coef < 0 and isinstance(atom, Quotient):
        return f"{name} * {coef}"
    scaled = name if abs(coef) == 1 else f"{name} * {abs(coef)}"
    if first:
        return f"-{scaled}" if coef < 0 else scaled
    return f" {'-' if coef < 0 else '+'} {scaled}"


def _quotient_text(q: Quotient) -> str:
    inner = index_text(q.index)
    inner = inner if inner.isidentifier() or inner.isdecimal() else f"({inner})"
    return f"{inner} {'%' if q.mod else '//'} {q.by}"
