"""IR text as Python syntax: the tree, the comments (which `ast` drops), and errors that point at a place."""

from __future__ import annotations

import ast
import io
import tokenize
from typing import NoReturn

from minicompile.errors import CompileError
from minicompile.ir.types import DTYPES, DType, TensorType


class Source:
    """One text. `comments` are those behind code, `notes` those alone on a line, by line number."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.comments: dict[int, str] = {}
        self.notes: dict[int, str] = {}
        try:
            self.tree = ast.parse(text)
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        except SyntaxError as e:
            raise self._error(
                e.lineno or 1, (e.offset or 1) - 1, f"not Python syntax: {e.msg}"
            ) from e
        for token in tokens:
            if token.type == tokenize.COMMENT:
                line, column = token.start
                alone = not self.lines[line - 1][:column].strip()
                where = self.notes if alone else self.comments
                where[line] = token.string.removeprefix("#").strip()

    def fail(self, node: ast.AST, message: str, remedy: str = "") -> NoReturn:
        """Raise MC020, pointing at the first character of `node`."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        raise self._error(line, len(text.encode()[:column].decode()), message, remedy)

    def _error(self, line: int, column: int, message: str, remedy: str = "") -> CompileError:
        """Lines and columns count from 1, as in an editor; `column` here from 0."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return CompileError(
            "MC020",
            message,
            where=f"line {line}, column {column + 1}",
            context=f"{text}\n{' ' * column}^",
            remedy=remedy,
        )

    def segment(self, node: ast.expr) -> str:
        """The text of an expression that stands on one line, as it was written."""
        line = self.lines[node.lineno - 1].encode()
        return line[node.col_offset : node.end_col_offset].decode()

    # ------------------------------------------------------------------------------ small parts

    def name(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return node.id
        self.fail(node, "a name is expected here")

    def integer(self, node: ast.AST) -> int:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.integer(node.operand)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        self.fail(node, "an integer is expected here")

    def dtype(self, node: ast.AST) -> DType:
        if isinstance(node, ast.Name) and node.id in DTYPES:
            return DTYPES[node.id]
        self.fail(node, "a dtype is expected here", f"Valid: {', '.join(DTYPES)}.")

    def call(self, node: ast.AST) -> tuple[str, list[ast.expr], dict[str, ast.expr]]:
        """``name(args, key=value)`` with a plain name."""
        if not isinstance(node, ast.Call):
            self.fail(node, "a call is expected here")
        keywords = {k.arg: k.value for k in node.keywords if k.arg is not None}
        return self.name(node.func), node.args, keywords

    def integers(self, node: ast.AST) -> tuple[int, ...]:
        """``(1, 2)``: a tuple of integers."""
        if not isinstance(node, ast.Tuple):
            self.fail(node, "a tuple of integers is expected here")
        return tuple(self.integer(e) for e in node.elts)

    # ------------------------------------------------------------------------------ types

    def declaration(self, node: ast.expr) -> tuple[TensorType, ast.expr | None]:
        """``type``, ``type @ strides(...)`` or ``type [@ strides(...)] @ place``: (type, place)."""
        marks: list[ast.expr] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            marks.insert(0, node.right)
            node = node.left
        strides = None
        if marks and isinstance(marks[0], ast.Call) and self.call(marks[0])[0] == "strides":
            strides = tuple(self.integer(a) for a in marks.pop(0).args)  # type: ignore[attr-defined]
        if len(marks) > 1:
            self.fail(marks[1], "only one place after the type")
        dtype, shape = self._dtype_and_shape(node)
        return TensorType(dtype, shape, strides), (marks[0] if marks else None)

    def type(self, node: ast.expr) -> TensorType:
        type, place = self.declaration(node)
        if place is not None:
            self.fail(place, "only strides(...) may follow a type here")
        return type

    def _dtype_and_shape(self, node: ast.expr) -> tuple[DType, tuple[int | str, ...]]:
        if not isinstance(node, ast.Subscript):
            return self.dtype(node), ()
        dims = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        shape = (d.id if isinstance(d, ast.Name) else self.integer(d) for d in dims)
        return self.dtype(node.value), tuple(shape)
