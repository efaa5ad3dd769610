"""Text -> expressions and indices of the Loop IR: the inverse of ir.expr_text."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from minicompile.ir.expr_text import constant_dtype
from minicompile.ir.index import Index, Quotient
from minicompile.ir.loop import Call, Const, Expr, Fold, If, IndexValue, Load, Name, dtype_of
from minicompile.ir.optable import OPS, infix_ops, scalar_dtype
from minicompile.ir.text_source import Source
from minicompile.ir.types import DTYPES, DType, TensorType

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_FLOATS = {"inf": float("inf"), "nan": float("nan")}


@dataclass
class ExprParser:
    """Reads expressions; knows what is declared so far: buffers, bound scalars, loop variables."""

    source: Source
    buffers: dict[str, TensorType] = field(default_factory=dict)
    scalars: dict[str, DType] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)

    # ------------------------------------------------------------------------------ expressions

    def expr(self, e: ast.expr, expected: DType | None = None) -> Expr:
        """`expected` is the dtype of a plain literal here."""
        if _literal(e):
            return self._const(e, expected)
        match e:
            case ast.Name():
                return self._name(e)
            case ast.Subscript(value=buf, slice=index):
                name = self.buffer(buf)
                return Load(name, self.indices(index), self.buffers[name].dtype)
            case ast.BinOp(left=a, op=operator, right=b):
                return self._call(e, self._infix(e, operator), [a, b])
            case ast.Compare(left=a, ops=[operator], comparators=[b]):
                return self._call(e, self._infix(e, operator), [a, b])
            case ast.IfExp():
                return self._if(e, expected)
            case ast.Call(func=ast.Name(id=op), args=args, keywords=[]):
                return self._named_call(e, op, args)
        self.source.fail(e, "this is not an expression of the Loop IR")

    def _const(self, e: ast.expr, dtype: DType | None) -> Const:
        if isinstance(e, ast.Call):  # f32(0.5)
            dtype, e = self.source.dtype(e.func), e.args[0]
        if dtype is None:
            self.source.fail(
                e, "nothing here tells the dtype of this constant", "Write it as in f32(0.5)."
            )
        return Const(_number(e), dtype)

    def _name(self, e: ast.Name) -> Expr:
        if e.id in self.scalars:
            return Name(e.id, self.scalars[e.id])
        if e.id in self.buffers:
            return Load(e.id, (), self.buffers[e.id].dtype)
        hint = f"Its value is written index({e.id})." if e.id in self.variables else ""
        self.source.fail(e, f"{e.id} is not a bound scalar here", hint)

    def _infix(self, e: ast.expr, operator: ast.AST) -> str:
        symbol = OPERATORS.get(type(operator), "?")
        op = infix_ops().get(symbol)
        if op is None:
            self.source.fail(e, f"no op is written {symbol}")
        return op

    def _named_call(self, e: ast.Call, op: str, args: list[ast.expr]) -> Expr:
        if op == "index" and len(args) == 1:
            return IndexValue(self.index(args[0]))
        if op.startswith("fold_") and len(args) == 1:
            name = self.buffer(args[0])
            return Fold(op.removeprefix("fold_"), name, self.buffers[name].dtype)
        if op not in OPS:
            self.source.fail(e, f"unknown op {op}", "`minicompile ops` lists the primitives.")
        if args and isinstance(args[-1], ast.Name) and args[-1].id in DTYPES:
            return self._call(e, op, args[:-1], self.source.dtype(args[-1]))
        return self._call(e, op, args)

    def _call(self, e: ast.expr, op: str, args: list[ast.expr], dtype: DType | None = None) -> Call:
        settled = [None if _literal(a) else self.expr(a) for a in args]
        common = constant_dtype([None if a is None else dtype_of(a) for a in settled])
        values = tuple(self._const(a, common) if v is None else v for a, v in zip(args, settled))
        if dtype is None:
            dtype = self._inferred(e, op, values)
        return Call(op, values, dtype)

    def _inferred(self, e: ast.expr, op: str, args: tuple[Expr, ...]) -> DType:
        try:
            dtype = scalar_dtype(op, *map(dtype_of, args))
        except TypeError as error:
            self.source.fail(e, f"{op}: {error}")
        if dtype is None:
            self.source.fail(e, f"{op} needs a dtype", f"Write {op}(..., f32).")
        return dtype

    def _if(self, e: ast.IfExp, expected: DType | None) -> If:
        arms = [None if _literal(a) else self.expr(a, expected) for a in (e.body, e.orelse)]
        dtype = constant_dtype([None if a is None else dtype_of(a) for a in arms]) or expected
        then, other = (
            self._const(a, dtype) if v is None else v for a, v in zip((e.body, e.orelse), arms)
        )
        return If(self._conditions(e.test), then, other)

    def _conditions(self, test: ast.expr) -> tuple[tuple[int, Index, int], ...]:
        match test:
            case ast.Constant(value=True):
                return ()
            case ast.BoolOp(op=ast.And(), values=values):
                return tuple(c for v in values for c in self._conditions(v))
            case ast.Compare(left=lo, ops=[ast.LtE(), ast.Lt()], comparators=[index, hi]):
                return ((self.source.integer(lo), self.index(index), self.source.integer(hi)),)
        self.source.fail(test, "a condition is written LO <= index < HI")

    # ------------------------------------------------------------------------------ indices

    def buffer(self, e: ast.expr) -> str:
        name = self.source.name(e)
        if name not in self.buffers:
            self.source.fail(e, f"{name} is not a buffer here")
        return name

    def indices(self, e: ast.expr) -> tuple[Index, ...]:
        """What stands between brackets."""
        return tuple(self.index(i) for i in (e.elts if isinstance(e, ast.Tuple) else [e]))

    def index(self, e: ast.expr) -> Index:
        """Terms in the order in which they are written, not collected."""
        match e:
            case ast.Constant(value=int(n)):
                return Index((), n)
            case ast.Name(id=name):
                if name not in self.variables and name not in self.scalars:
                    self.source.fail(e, f"{name} is not a loop variable or bound name here")
                return Index(((name, 1),))
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return _scaled(self.index(a), -1)
            case ast.BinOp(left=a, op=ast.Add(), right=b):
                return _sum(self.index(a), self.index(b))
            case ast.BinOp(left=a, op=ast.Sub(), right=b):
                return _sum(self.index(a), _scaled(self.index(b), -1))
            case ast.BinOp(left=a, op=ast.Mult(), right=b):
                return _scaled(self.index(a), self.source.integer(b))
            case ast.BinOp(left=a, op=ast.FloorDiv() | ast.Mod() as op, right=b):
                by = self.source.integer(b)
                return Index(((Quotient(self.index(a), by, isinstance(op, ast.Mod)), 1),))
        self.source.fail(e, "an index is a sum of integers and of names times integers")


def _sum(a: Index, b: Index) -> Index:
    return Index(a.terms + b.terms, a.const + b.const)


def _scaled(a: Index, n: int) -> Index:
    return Index(tuple((atom, c * n) for atom, c in a.terms), a.const * n)


def _literal(e: ast.expr) -> bool:
    """A number, with or without a dtype around it: ``0.5``, ``-inf``, ``f32(0.5)``."""
    match e:
        case ast.Call(func=ast.Name(id=name), args=[arg], keywords=[]):
            return name in DTYPES and _literal(arg)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _literal(operand)
        case ast.Name(id=name):
            return name in _FLOATS
    return isinstance(e, ast.Constant)


def _number(e: ast.expr) -> bool | int | float:
    match e:
        case ast.UnaryOp(operand=operand):
            return -_number(operand)
        case ast.Name(id=name):
            return _FLOATS[name]
        case ast.Constant(value=bool() | int() | float() as number):
            return number
    raise ValueError(f"{ast.unparse(e)} is not a number")
