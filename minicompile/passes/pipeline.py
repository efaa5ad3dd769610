"""A pipeline as text: ``decompose,fold,simplify,cse,dce,fuse{max_inputs=8,max_nodes=40}``.

pipeline := step ("," step)*
step     := NAME | NAME "{" OPTION "=" literal ("," OPTION "=" literal)* "}"
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from minicompile.errors import CompileError, unknown_name
from minicompile.passes.base import PASSES, Pass

_STEP = re.compile(r"\s*(\w+)\s*(?:\{([^{}]*)\})?\s*(?:,|$)")


def parse_pipeline(text: str) -> tuple[Pass, ...]:
    """The passes named in `text`. CompileError for unknown passes and options, and for bad syntax."""
    steps: list[Pass] = []
    at = 0
    while at < len(text.rstrip()):
        match = _STEP.match(text, at)
        if match is None:
            raise _malformed(f"malformed pipeline {text!r}", f"column {at + 1}")
        steps.append(make_pass(match[1], _options(match[1], match[2] or "")))
        at = match.end()
    return tuple(steps)


def print_pipeline(pipeline: Iterable[Pass]) -> str:
    """The text of a pipeline; parses back to the same passes."""
    return ",".join(map(str, pipeline))


def make_pass(name: str, options: dict[str, Any]) -> Pass:
    """The pass `name` with these options. CompileError listing the valid names if there is none."""
    if name not in PASSES:
        raise unknown_name("pass", name, sorted(PASSES))
    cls = PASSES[name]
    known = {f.name: f for f in fields(cls)}
    for option, value in options.items():
        if option not in known:
            raise unknown_name(f"option of pass {name}", option, sorted(known) or ["(none)"])
        want = type(known[option].default)
        if not isinstance(value, want):
            raise CompileError(
                "MC002",
                f"option {option} of pass {name} is {want.__name__}, not {value!r}",
                remedy=f"For example {name}{{{option}={known[option].default!r}}}.",
            )
    return cls(**options)


def _options(name: str, text: str) -> dict[str, Any]:
    """``max_inputs=8, max_nodes=40`` -> {"max_inputs": 8, ...}, read as keyword arguments of a call."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args or any(k.arg is None for k in call.keywords):
            raise ValueError("options are given by name")
        return {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError) as e:
        raise _malformed(f"malformed options {{{text}}} of pass {name}: {e}", "") from e


def _malformed(message: str, where: str) -> CompileError:
    remedy = "Write passes as in decompose,fold,fuse{max_inputs=8}."
    return CompileError("MC002", message, where=where, remedy=remedy)
