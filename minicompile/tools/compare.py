"""``minicompile opt`` and ``diff``: IR as text goes in, and what passes make of it, or differences, come out."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import minicompile.lower  # noqa: F401  (registers the passes on loops)
from minicompile.errors import CompileError
from minicompile.ir.text import parse, text
from minicompile.passes.manager import PassManager
from minicompile.tools import target as targets
from minicompile.tools.explain import compile_stages
from minicompile.tools.page import say
from minicompile.view import diff, render


def opt_command(arguments: argparse.Namespace) -> int:
    """Parse, run the passes, print; what each pass did goes to standard error."""
    ir = parse(read(arguments.file))
    ir, records = PassManager.of(arguments.passes).run(ir)
    for record in records:
        print(record.sentence, file=sys.stderr)
    print(text(ir), end="")
    return 0


def read(name: str) -> str:
    """A file's text, or standard input for "-". CompileError MC002 if it cannot be read."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError("MC002", f"cannot read {name}: {error}") from error


def diff_command(arguments: argparse.Namespace) -> int:
    """One sentence, then the texts' differences; 1 if there are any, as the program diff does."""
    before, after = load(arguments.a), load(arguments.b)
    found = diff(before, after)
    say(str(found))
    lines = list(unified(text(before), text(after), arguments.a, arguments.b))
    print("".join(lines), end="")
    if arguments.out:
        render(found.dot, arguments.out)
        say(f"Wrote {arguments.out}")
    return 1 if lines else 0


def load(name: str) -> Any:
    """The IR in a text file, or that of TARGET@STAGE (the last graph where no stage is named)."""
    if Path(name).is_file():
        return parse(read(name))
    target, _, stage = name.partition("@")
    if not stage:
        raise CompileError(
            "MC002",
            f"{name!r} is neither a file nor a stage",
            remedy="Give a file with IR text, or TARGET@STAGE such as gpt@fuse.",
        )
    found = compile_stages(targets.resolve(target))[stage]
    if found.level == "source":
        raise CompileError("MC002", f"{stage} is source text", remedy="Compare its .text instead.")
    return found.ir


def unified(a: str, b: str, name_a: str, name_b: str) -> Iterable[str]:
    rows = (a.splitlines(keepends=True), b.splitlines(keepends=True))
    return difflib.unified_diff(*rows, name_a, name_b)
