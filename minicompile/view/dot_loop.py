"""Loops as nested boxes: one table for each kernel, no layout involved; memories have their tints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import pairwise

from minicompile.ir.loop import Alloc, For, Kernel, KernelCall, Program, Stmt
from minicompile.ir.loop_text import KernelPrinter
from minicompile.ir.walk import walk
from minicompile.view import style
from minicompile.view.style import PALETTE, SMALL, caption, words

ROWS_ABOVE = 400  # statements: with more, kernels are closed to their heads
WIDEST = 110  # characters of one statement

# kind of loop -> (colour of its frame, width in points, style)
FRAMES = {
    "serial": ("edge", 1, ""),
    "unroll": ("edge", 1, ' STYLE="DOTTED"'),
    "vector": ("E", 2, ""),
    "parallel": ("G", 2, ""),
    "block": ("M", 2, ""),
    "thread": ("S", 2, ""),
}


def dot_kernel(kernel: Kernel) -> str:
    """One kernel."""
    return style.drawing([_node(kernel, "", closed=False, marked=())])


def dot_program(program: Program, marked: Collection[str] = ()) -> str:
    """The distinct kernels of a program in columns; those in `marked` get a + (for differences)."""
    if not program.kernels:
        return style.notice("no kernels: PyTorch runs everything")
    sizes = {k.name: sum(1 for _ in statements(k)) + 2 for k in program.kernels}
    closed = sum(sizes.values()) > ROWS_ABOVE
    calls = Counter(c.kernel for c in program.calls if isinstance(c, KernelCall))
    body = []
    for kernel in program.kernels:
        times = f"{calls[kernel.name]} calls" if calls[kernel.name] > 1 else ""
        body.append(_node(kernel, times, closed, marked))
    heights = {name: 2 if closed else size for name, size in sizes.items()}
    for column in _columns([k.name for k in program.kernels], heights):
        for above, below in pairwise(column):
            body.append(f"{_id(above)} -> {_id(below)} [style=invis]")
    if closed:
        note = f"{sum(sizes.values())} statements: kernels are closed to their heads"
        return style.drawing(body, f"label=<{caption(note)}>")
    return style.drawing(body)


def statements(kernel: Kernel) -> list[Stmt]:
    """Every statement of the kernel, loops included, in the order of the text."""
    kinds = Stmt.__args__  # type: ignore[attr-defined]
    return [s for s in walk(kernel.body) if isinstance(s, kinds)]


def _id(kernel: str) -> str:
    return style.identifier("f", kernel)


def _columns(names: list[str], heights: dict[str, int]) -> list[list[str]]:
    """Kernels in order, in one to four columns of about the same height."""
    total = sum(heights.values())
    count = max(1, min(4, round((total / 40) ** 0.5)))
    columns: list[list[str]] = [[]]
    filled = 0
    for name in names:
        if filled >= total / count and len(columns) < count:
            columns.append([])
            filled = 0
        columns[-1].append(name)
        filled += heights[name]
    return columns


# ---------------------------------------------------------------------------------- tables


def _node(kernel: Kernel, times: str, closed: bool, marked: Collection[str]) -> str:
    mark = words("+ ", "added", style.LARGE, bold=True) if kernel.name in marked else ""
    reads = [p.name for p in kernel.params[: len(kernel.params) - kernel.outputs]]
    wires = f"{' '.join(reads)} -> {' '.join(p.name for p in kernel.written)}".strip()
    head = mark + words(kernel.name, size=style.LARGE, bold=True)
    head += words(f"  {style.shorten(wires, 60)}", "muted", 9)
    head += words(f"  {times}" if times else "", "ink", 9)
    rows = [_row(head, "panel", 3)]
    if closed:
        loops = sum(isinstance(s, For) for s in statements(kernel))
        rows.append(
            _row(caption(f"{loops} loops, {len(statements(kernel)) - loops} statements"), "")
        )
    else:
        rows += _Nest(kernel).rows(kernel.body)
    label = _table(rows, "ink", 1, "", spacing=2)
    return style.node(_id(kernel.name), label, "fn")


class _Nest:
    """The rows of a loop nest; the printer of the text writes the statements."""

    def __init__(self, kernel: Kernel) -> None:
        self.printer = KernelPrinter(kernel)

    def rows(self, body: tuple[Stmt, ...]) -> list[str]:
        return [self._loop(s) if isinstance(s, For) else self._line(s) for s in body]

    def _line(self, s: Stmt) -> str:
        text = style.shorten(self.printer.statement(s), WIDEST)
        if isinstance(s, Alloc):
            name, _, rest = text.partition(":")
            return _row(words(name, bold=True) + words(f":{rest}", "ink", SMALL), s.memory, 2)
        return _row(words(text, size=9.5), "paper")

    def _loop(self, loop: For) -> str:
        color, width, dotted = FRAMES[loop.kind]
        loud = loop.kind not in ("serial", "unroll")
        tone = color if loud else "L" if loop.kind == "unroll" else "muted"
        head = words(loop.kind, tone, style.NORMAL, bold=loud)
        head += " " + words(loop.var, size=style.NORMAL, bold=True)
        head += words(f" < {_extent(loop)}", "muted", 9)
        rows = [_row(head, "panel", 2), *self.rows(loop.body)]
        return (
            f'<TR><TD ALIGN="LEFT" CELLPADDING="3">{_table(rows, color, width, dotted)}</TD></TR>'
        )


def _extent(loop: For) -> str:
    parts = [str(loop.extent)]
    if loop.active is not None:
        parts.append(f"{loop.active} active")
    if loop.step != 1:
        parts.append(f"step {loop.step}")
    if loop.last is not None:
        parts.append(f"last {loop.last}")
    return ", ".join(parts)


def _row(content: str, ground: str, padding: int = 1) -> str:
    color = f' BGCOLOR="{PALETTE[ground]}"' if ground else ""
    return f'<TR><TD ALIGN="LEFT"{color} CELLPADDING="{padding}">{content}</TD></TR>'


def _table(rows: list[str], line: str, width: int, looks: str, spacing: int = 1) -> str:
    ground = f' BGCOLOR="{PALETTE["paper"]}"' if line == "ink" else ""
    return (
        f'<TABLE BORDER="{width}" CELLBORDER="0" CELLSPACING="{spacing}" CELLPADDING="1" '
        f'COLOR="{PALETTE[line]}"{looks}{ground}>{"".join(rows)}</TABLE>'
    )
