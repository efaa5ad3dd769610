"""Errors for people: what went wrong, where (the user's own line and the IR around it), and what to do.

Every error has a code (``MC012``).  `CODES` lists them all; the docs have a short page for each.
"""

from __future__ import annotations

CODES: dict[str, str] = {
    "MC001": "unknown name (backend, mode, pass, stage, option, model)",
    "MC002": "wrong kind of argument",
    "MC010": "the model could not be captured",
    "MC011": "data-dependent control flow or shape",
    "MC012": "unsupported mutation or aliasing",
    "MC013": "unsupported device or tensor kind",
    "MC020": "malformed IR text",
    "MC021": "ill-formed IR (verifier)",
    "MC030": "a pass failed",
    "MC040": "code generation or build failed",
    "MC050": "index out of range at run time",
    "MC060": "drawing failed",
}


class CompileError(RuntimeError):
    """A problem that a person has to solve.

    `code` is one of `CODES`, `where` the user's line (``m.py:7``) or a place in IR text (``line 3,
    column 8``), `context` a few lines of source or IR around it, `remedy` what to do.
    """

    def __init__(
        self, code: str, message: str, *, where: str = "", context: str = "", remedy: str = ""
    ) -> None:
        if code not in CODES:
            raise ValueError(f"unknown error code {code}; errors.CODES lists them all")
        self.code, self.message = code, message
        self.where, self.context, self.remedy = where, context, remedy
        parts = [f"{code}: {message}"]
        if where:
            parts.append(f"  at {where}")
        if context:
            parts.append("\n".join("    " + line for line in context.splitlines()))
        if remedy:
            parts.append(f"  {remedy}")
        super().__init__("\n".join(parts))


class IndexOutOfRange(CompileError, IndexError):
    """An index read from a tensor is outside its axis; found while the model runs.

    PyTorch raises IndexError for some ops and RuntimeError for others: whoever catches either, catches
    this.
    """

    def __init__(self, size: int, where: str = "") -> None:
        super().__init__("MC050", f"index out of range for an axis of size {size}", where=where)


class NotNative(Exception):
    """Raised by a decomposition that does not cover its arguments: the op then stays Extern."""


def unknown_name(what: str, name: object, valid: list[str]) -> CompileError:
    """The error for a bad name: says so, and lists the valid ones (with the nearest first)."""
    import difflib

    near = difflib.get_close_matches(str(name), valid, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return CompileError(
        "MC001",
        f"unknown {what} {name!r}",
        remedy=f"{hint}Valid: {', '.join(map(str, valid))}.",
    )
