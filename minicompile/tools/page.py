"""Tables on the terminal, and as plain aligned text where the output goes to a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def console() -> Console:
    """The console of this moment (the streams may have been exchanged); no markup is interpreted."""
    made = Console(markup=False, highlight=False, emoji=False, soft_wrap=False)
    if not made.is_terminal:
        made.width = max(made.width, 120)
    return made


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = (), title: str = ""
) -> None:
    """Print a table; the columns numbered in `right` are right aligned. Long cells are wrapped."""
    made = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for i, head in enumerate(heads):
        made.add_column(head, justify="right" if i in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    console().print(made)


def say(text: str = "") -> None:
    """Print a line, wrapped by the terminal only."""
    print(text)
