"""Text -> Kernel: the inverse of ir.loop_text."""

from __future__ import annotations

import ast
from typing import NoReturn

from minicompile.ir.expr_parse import ExprParser
from minicompile.ir.index import Index, variables
from minicompile.ir.location import Origin
from minicompile.ir.loop import (
    KINDS,
    MEMORIES,
    Accumulate,
    Alloc,
    Barrier,
    Bind,
    Check,
    For,
    Kernel,
    Param,
    Stmt,
    Store,
)
from minicompile.ir.loop_text import CALLED
from minicompile.ir.text_lines import parse_comment
from minicompile.ir.text_source import Source
from minicompile.ir.walk import walk

_AUGMENTED: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Mult: "mul",
    ast.BitOr: "or",
    ast.BitAnd: "and",
}


def parse_kernel(source: Source, function: ast.FunctionDef) -> Kernel:
    """The kernel that `function` writes down. CompileError MC020 at the first thing that is wrong."""
    return KernelParser(source).kernel(function)


class KernelParser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.exprs = ExprParser(source)

    def kernel(self, function: ast.FunctionDef) -> Kernel:
        params = tuple(self._param(a) for a in function.args.args)
        body = self.block(function.body)
        return Kernel(function.name, params, self._outputs(function, params, body), body)

    def _param(self, arg: ast.arg) -> Param:
        if arg.annotation is None:
            self.source.fail(arg, f"{arg.arg} has no type", f"Write {arg.arg}: f32[...].")
        type = self.source.type(arg.annotation)
        self.exprs.buffers[arg.arg] = type
        return Param(arg.arg, type)

    def _outputs(
        self, function: ast.FunctionDef, params: tuple[Param, ...], body: tuple[Stmt, ...]
    ) -> int:
        """How many of the last parameters are written: those named after the arrow, or all stored to."""
        names = [p.name for p in params]
        r = function.returns
        if r is None:
            stored = {s.buf for s in walk(body) if isinstance(s, (Store, Accumulate))}
            return next((len(names) - i for i, n in enumerate(names) if n in stored), 0)
        items = r.elts if isinstance(r, ast.Tuple) else [r]
        written = [self.source.name(e) for e in items]
        if written != names[len(names) - len(written) :]:
            self.source.fail(r, "a kernel writes its last parameters, in their order")
        return len(written)

    # ------------------------------------------------------------------------------ statements

    def block(self, stmts: list[ast.stmt]) -> tuple[Stmt, ...]:
        return tuple(self.statement(s) for s in stmts if not isinstance(s, ast.Pass))

    def statement(self, s: ast.stmt) -> Stmt:
        match s:
            case ast.For(target=ast.Name(id=var), iter=iterator, body=body):
                return self._for(var, iterator, body)
            case ast.AnnAssign(target=ast.Name(id=name), value=None):
                return self._alloc(s, name)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                dtype = self.source.dtype(s.annotation)
                bound = self.exprs.expr(value, dtype)
                self.exprs.scalars[name] = dtype
                return Bind(name, bound, dtype, self._origins(s, name))
            case ast.Assign(targets=[target], value=value):
                return self._store(s, target, value)
            case ast.AugAssign(target=target, op=operator, value=value):
                if type(operator) not in _AUGMENTED:
                    self.source.fail(s, "accumulates are +=, *=, |=, &=, max(...) and min(...)")
                return self._accumulate(s, target, value, _AUGMENTED[type(operator)])
            case ast.Expr(value=ast.Call(func=ast.Name(id="check"), args=[index, size])):
                checked = self.exprs.index(index)
                name = min(variables(checked), default="")
                return Check(checked, self.source.integer(size), self._origins(s, name))
            case ast.Expr(value=ast.Call(func=ast.Name(id="barrier"), args=[])):
                return Barrier()
        self.source.fail(s, "this statement is not part of a kernel")

    def _origins(self, s: ast.stmt, name: str) -> tuple[Origin, ...]:
        comment = self.source.comments.get(s.end_lineno or s.lineno, "")
        return parse_comment(comment, name)[0]

    def _for(self, var: str, iterator: ast.expr, body: list[ast.stmt]) -> For:
        kind, args, keywords = self.source.call(iterator)
        if kind not in KINDS or len(args) != 1 or not keywords.keys() <= {"active", "step", "last"}:
            message = "a loop is written KIND(EXTENT, active=..., step=..., last=...)"
            self.source.fail(iterator, message, f"Kinds: {', '.join(KINDS)}.")
        options = {k: self.source.integer(v) for k, v in keywords.items()}
        self.exprs.variables.add(var)
        return For(var, self.source.integer(args[0]), kind, self.block(body), **options)

    def _alloc(self, s: ast.AnnAssign, name: str) -> Alloc:
        type, place = self.source.declaration(s.annotation)
        if not isinstance(place, ast.Name) or place.id not in MEMORIES:
            message = f"{name} needs a memory: {name}: type @ MEMORY"
            self.source.fail(place or s, message, f"Memories: {', '.join(MEMORIES)}.")
        self.exprs.buffers[name] = type
        return Alloc(name, type, place.id, self._origins(s, name))

    def _store(self, s: ast.stmt, target: ast.expr, value: ast.expr) -> Stmt:
        match value:
            case ast.Call(func=ast.Name(id=op), args=[old, new]) if op in CALLED:
                if ast.unparse(old) != ast.unparse(target):
                    self._fail_element(old, op)
                return self._accumulate(s, target, new, op)
        buf, index = self._element(target)
        stored = self.exprs.expr(value, self.exprs.buffers[buf].dtype)
        return Store(buf, index, stored, self._origins(s, buf))

    def _fail_element(self, old: ast.expr, op: str) -> NoReturn:
        message = f"{op} accumulates: its first argument is the element assigned to"
        self.source.fail(old, message, "The elementwise ops are maximum and minimum.")

    def _accumulate(self, s: ast.stmt, target: ast.expr, value: ast.expr, op: str) -> Accumulate:
        buf, index = self._element(target)
        added = self.exprs.expr(value, self.exprs.buffers[buf].dtype)
        return Accumulate(buf, index, added, op, self._origins(s, buf))

    def _element(self, target: ast.expr) -> tuple[str, tuple[Index, ...]]:
        if isinstance(target, ast.Subscript):
            return self.exprs.buffer(target.value), self.exprs.indices(target.slice)
        return self.exprs.buffer(target), ()
