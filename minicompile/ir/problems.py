"""What a verifier finds: all problems of one IR, reported together, each under the text it is about."""

from __future__ import annotations

import keyword
from dataclasses import dataclass

from minicompile.errors import CompileError
from minicompile.ir.words import RESERVED

SHOWN = 10  # more problems than this are only counted


@dataclass(frozen=True)
class Problem:
    """`rule` is the number in the verifier's docstring (G3), `text` the IR around the problem."""

    rule: str
    message: str
    text: str = ""
    where: str = ""

    def __str__(self) -> str:
        lines = self.text.splitlines() or [""]
        indent = " " * (len(lines[-1]) - len(lines[-1].lstrip()))
        return "\n".join([*filter(None, lines), f"{indent}^ {self.rule}: {self.message}"])


def raise_if_any(what: str, problems: list[Problem]) -> None:
    """One CompileError MC021 about all problems of `what` ("graph mlp"), or nothing."""
    if not problems:
        return
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    shown = [str(p) for p in problems[:SHOWN]]
    if len(problems) > SHOWN:
        shown.append(f"... and {len(problems) - SHOWN} more")
    raise CompileError(
        "MC021",
        f"{what} is ill-formed: {count}",
        where=next((p.where for p in problems if p.where), ""),
        context="\n".join(shown),
        remedy="The rules are listed in minicompile.ir.verify; a pass that breaks one has a bug.",
    )


def bad_name(name: str) -> str:
    """Why `name` cannot stand in the text, or ""."""
    if not name.isidentifier() or keyword.iskeyword(name):
        return f"{name!r} is not a Python name"
    return f"{name} is a reserved word of the text" if name in RESERVED else ""
