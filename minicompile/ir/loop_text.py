"""Kernel -> text; the grammar is in ir.loop, the notation of accumulates and constants in ir.text."""

from __future__ import annotations

from minicompile.ir.expr_text import expr_text, index_list, index_text
from minicompile.ir.index import Index
from minicompile.ir.loop import Accumulate, Alloc, Barrier, Bind, Check, For, Kernel, Stmt, Store
from minicompile.ir.text_lines import Lines, comment
from minicompile.ir.types import DType

AUGMENTED = {"add": "+=", "mul": "*=", "or": "|=", "and": "&="}  # combine -> how Python writes it
CALLED = ("max", "min")  # combines without an operator: acc = max(acc, e)


def kernel_text(kernel: Kernel) -> str:
    """The text of one kernel, without a line feed at the end."""
    return KernelPrinter(kernel).text()


class KernelPrinter:
    """Prints statements in order; knows the buffers declared so far."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.lines = kernel, Lines()
        self.dtypes: dict[str, DType] = {p.name: p.type.dtype for p in kernel.params}
        self.plain: set[str] = set()  # 0-d registers: written as plain names

    def text(self) -> str:
        self.lines.add_list(0, *self._head())
        self.block(self.kernel.body, 1)
        return self.lines.text()

    def head(self) -> str:
        """The signature on one line."""
        start, params, end = self._head()
        return start + ", ".join(params) + end

    def _head(self) -> tuple[str, list[str], str]:
        k = self.kernel
        written = [p.name for p in k.written] if k.outputs else []
        result = written[0] if len(written) == 1 else f"({', '.join(written)})"
        params = [f"{p.name}: {p.type}" for p in k.params]
        return f"def {k.name}(", params, f") -> {result}:"

    def block(self, stmts: tuple[Stmt, ...], depth: int) -> None:
        if not stmts:
            self.lines.add(depth, "pass")
        for s in stmts:
            origins = getattr(s, "origins", ())
            self.lines.add(depth, self.statement(s), comment(origins))
            if isinstance(s, For):
                self.block(s.body, depth + 1)

    def statement(self, s: Stmt) -> str:
        """One statement on one line, without its comment and (for a loop) its body."""
        match s:
            case For():
                return f"for {s.var} in {s.kind}({_loop_arguments(s)}):"
            case Alloc(buf, type, memory):
                self.dtypes[buf] = type.dtype
                if memory == "register" and not type.shape:
                    self.plain.add(buf)
                return f"{buf}: {type} @ {memory}"
            case Bind(name, value, dtype):
                return f"{name}: {dtype} = {expr_text(value, dtype, self.plain)}"
            case Store(buf, index, value):
                return f"{self._element(buf, index)} = {self._stored(buf, value)}"
            case Accumulate(buf, index, value, op):
                element, stored = self._element(buf, index), self._stored(buf, value)
                if op in AUGMENTED:
                    return f"{element} {AUGMENTED[op]} {stored}"
                return f"{element} = {op}({element}, {stored})"
            case Check(checked, size):
                return f"check({index_text(checked)}, {size})"
            case Barrier():
                return "barrier()"
        raise TypeError(f"{s!r} is not a statement of the Loop IR")

    def _element(self, buf: str, index: tuple[Index, ...]) -> str:
        return buf if buf in self.plain and not index else f"{buf}[{index_list(index)}]"

    def _stored(self, buf: str, value: object) -> str:
        return expr_text(value, self.dtypes.get(buf), self.plain)  # type: ignore[arg-type]


def _loop_arguments(loop: For) -> str:
    text = str(loop.extent)
    if loop.active is not None:
        text += f", active={loop.active}"
    if loop.step != 1:
        text += f", step={loop.step}"
    if loop.last is not None:
        text += f", last={loop.last}"
    return text
