"""The memory of a program: a bar for each buffer, from its first write to its last read."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.ir.loop import Buffer, KernelCall, Program
from minicompile.view import style
from minicompile.view.dot_edges import size_text
from minicompile.view.style import PALETTE, SMALL, caption, words

SHOWN = ("arena", "output", "tensor")  # what a call allocates; inputs and parameters are given
TINTS = {"arena": "arena", "output": "arena", "tensor": "local"}
ROWS = 120  # buffers in one drawing
WIDTH = 1000  # points for all calls together


@dataclass(frozen=True)
class Life:
    """A buffer, and the numbers of the first and last call that touch it or an alias of it."""

    buffer: Buffer
    first: int
    last: int


def lives(program: Program) -> list[Life]:
    """The lifetimes of all buffers that the program allocates, in order of their first write."""
    bases = {b.name: b.base or b.name for b in program.buffers}
    span: dict[str, tuple[int, int]] = {}
    for i, names in enumerate(touched(program)):
        for name in names:
            while bases.get(name, name) != name:
                name = bases[name]
            first, _ = span.get(name, (i, i))
            span[name] = (first, i)
    buffers = [b for b in program.buffers if b.place in SHOWN and b.name in span]
    return sorted((Life(b, *span[b.name]) for b in buffers), key=lambda life: life.first)


def touched(program: Program) -> list[tuple[str, ...]]:
    """The buffers that each call reads or writes."""
    return [
        c.buffers
        if isinstance(c, KernelCall)
        else tuple(v.name for v in (*c.node.operands, *c.node.outs))
        for c in program.calls
    ]


def reused(life: Life, earlier: list[Life]) -> list[str]:
    """The buffers that lay in the same bytes of the arena, and were dead by then."""
    start = life.buffer.offset
    if start is None:
        return []
    end = start + life.buffer.type.bytes
    found = []
    for other in earlier:
        at = other.buffer.offset
        if at is None or other is life or other.last > life.first:
            continue
        if at < end and start < at + other.buffer.type.bytes:
            found.append(other.buffer.name)
    return found[-2:]


def dot_buffers(program: Program) -> str:
    """The bars as one table; calls from left to right."""
    all_lives = lives(program)
    if not all_lives:
        return style.notice("no buffers: every result goes straight to the caller")
    calls = len(program.calls)
    width = max(6, min(58, WIDTH // calls))
    rows = [_head(program, width)]
    rows += [_bar(life, all_lives[:i], calls, width) for i, life in enumerate(all_lives[:ROWS])]
    total = sum(life.buffer.type.bytes for life in all_lives if life.buffer.place == "arena")
    note = f"arena: {size_text(program.arena_bytes)} for {size_text(total)} of buffers"
    if len(all_lives) > ROWS:
        note += f"; {len(all_lives) - ROWS} more buffers are not drawn"
    table = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="3" CELLPADDING="3">'
    label = f"{table}{rows[0]}<HR/>{''.join(rows[1:])}</TABLE>"
    return style.drawing([style.node("n_bars", label)], f"label=<{caption(note)}>")


def _head(program: Program, width: int) -> str:
    """The names of the calls; where columns are narrow, one name stands over several."""
    names = [c.kernel if isinstance(c, KernelCall) else "torch" for c in program.calls]
    longest = max(len(n) for n in names) * 6 + 8
    step = max(1, -(-longest // (width + 3)))
    cells = []
    for i in range(0, len(names), step):
        span = min(step, len(names) - i)
        cells.append(_cell(words(names[i], size=style.NORMAL, bold=True), span, width * span))
    ends = f'<TD ALIGN="RIGHT">{caption("bytes")}</TD><TD ALIGN="LEFT">{caption("place")}</TD>'
    return f'<TR><TD ALIGN="LEFT">{caption("buffer")}</TD>{"".join(cells)}{ends}</TR>'


def _cell(content: str, span: int, width: int, looks: str = "") -> str:
    columns = f' COLSPAN="{span}"' if span > 1 else ""
    return f'<TD ALIGN="LEFT" WIDTH="{width}"{columns}{looks}>{content}</TD>'


def _bar(life: Life, earlier: list[Life], calls: int, width: int) -> str:
    b = life.buffer
    name = words(style.shorten(b.name, 24), bold=True) + " " + caption(str(b.type.pure()))
    span = life.last - life.first + 1
    tint = PALETTE[TINTS[b.place]]
    looks = f' BGCOLOR="{tint}" BORDER="1" COLOR="{PALETTE["ink"]}"'
    text = words(b.place, "ink", SMALL) if span * (width + 3) > 48 else " "
    cells = [f'<TD ALIGN="LEFT" BGCOLOR="{PALETTE["paper"]}">{name}</TD>']
    cells += [_cell(" ", 1, width)] * life.first
    cells += [_cell(text, span, width * span, looks)]
    cells += [_cell(" ", 1, width)] * (calls - life.last - 1)
    place = b.place if b.offset is None else f"{b.offset:,}"
    again = reused(life, earlier)
    place += f"   reuses {', '.join(again)}" if again else ""
    cells.append(f'<TD ALIGN="RIGHT">{words(f"{b.type.bytes:,}", size=9)}</TD>')
    cells.append(f'<TD ALIGN="LEFT">{caption(place) or " "}</TD>')
    return f"<TR>{''.join(cells)}</TR>"
