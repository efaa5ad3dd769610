"""Where a node comes from: a place in the user's source, and the ATen value computed there.

An **origin** is a path ``m.py:7/t3/t3_3``: line, ATen value, primitive.  Two things anywhere in the
pipeline are related when one path is a prefix of the other; that is the whole linking rule.  Nodes
that are merged unite their origins, so nothing ever loses its source line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Loc:
    """A place in the user's code. Lines count from 1, columns from 0 as in Python's `ast`.

    `function` is the enclosing Python function, `module` the path of the nn.Module (``layers.0.attn``),
    `call` the torch-level call (``linear``).  Empty or 0 where unknown.
    """

    file: str
    line: int
    col: int = 0
    end_line: int = 0
    end_col: int = 0
    function: str = ""
    module: str = ""
    call: str = ""

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


@dataclass(frozen=True, order=True)
class Origin:
    """One parent of a node: the source location, and the name of the ATen value made there."""

    loc: Loc
    value: str

    def path(self, name: str = "") -> str:
        """``m.py:7/t3`` or, for the primitive `name` below it, ``m.py:7/t3/t3_3``."""
        tail = f"/{name}" if name and name != self.value else ""
        return f"{self.loc}/{self.value}{tail}"


def unite(*groups: Iterable[Origin]) -> tuple[Origin, ...]:
    """The union of several nodes' origins: sorted, without repeats."""
    return tuple(sorted({o for group in groups for o in group}))


def related(a: str, b: str) -> bool:
    """Are two origin paths related, that is, is one a prefix of the other?"""
    x, y = a.split("/"), b.split("/")
    n = min(len(x), len(y))
    return x[:n] == y[:n]


def lines(origins: Iterable[Origin]) -> str:
    """``m.py:4, m.py:7``: the distinct lines, for a trailing comment."""
    return ", ".join(dict.fromkeys(str(o.loc) for o in sorted(origins)))
