"""The printed page: lines with comments in one column, long argument lists one item a line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from minicompile.ir.location import Loc, Origin

WIDTH = 100  # a `def` or `return` that is longer is broken, one item a line
ALIGNED = 84  # code up to this column takes part in the alignment of comments
INDENT = "    "


class Lines:
    """One function's text. Trailing comments stand in one column, except behind very long lines."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, str]] = []

    def add(self, depth: int, code: str, comment: str = "") -> None:
        self._lines.append((INDENT * depth + code, comment))

    def add_list(self, depth: int, head: str, items: Sequence[str], tail: str) -> None:
        """``head item, item tail`` on one line, or one item a line where that is too long."""
        line = head + ", ".join(items) + tail
        if len(line) + len(INDENT) * depth <= WIDTH or not items:
            self.add(depth, line)
            return
        self.add(depth, head)
        for item in items:
            self.add(depth + 1, item + ",")
        self.add(depth, tail)

    def text(self) -> str:
        commented = [len(code) for code, comment in self._lines if comment]
        column = max((n for n in commented if n <= ALIGNED), default=0)
        return "\n".join(
            f"{code.ljust(column)}  # {comment}" if comment else code
            for code, comment in self._lines
        )


# ---------------------------------------------------------------------------------- comments

_PLACE = r"[^,;]*:\d+"
_COMMENT = re.compile(rf"(?P<places>{_PLACE}(?:, {_PLACE})*)?(?P<sep>; |$)?(?P<why>.*)")


def comment(origins: Iterable[Origin], why: str = "") -> str:
    """``m.py:4, m.py:7; layout of output 0``: the user's lines, then the compiler's reason."""
    places = {(os.path.basename(o.loc.file), o.loc.line) for o in origins}
    parts = [", ".join(f"{file}:{line}" for file, line in sorted(places)), " ".join(why.split())]
    return "; ".join(p for p in parts if p)


def parse_comment(text: str, name: str) -> tuple[tuple[Origin, ...], str]:
    """The origins and the reason in the comment behind the definition of `name`.

    The comment keeps file and line of an origin; its ATen value is taken from the name: t2_0 is a part
    of t2.
    """
    match = _COMMENT.fullmatch(text)
    if match is None or match["places"] is None:
        return (), text
    places = [p.rsplit(":", 1) for p in match["places"].split(", ")]
    value = parent(name)
    return tuple(Origin(Loc(file, int(line)), value) for file, line in places), match["why"]


def parent(name: str) -> str:
    """The ATen value that `name` is a part of: ``t2_0`` -> ``t2``."""
    return re.sub(r"(_\d+)+$", "", name)
