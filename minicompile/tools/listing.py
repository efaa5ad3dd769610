"""``minicompile passes``, ``ops`` and ``zoo``: what there is, read from the registries themselves."""

from __future__ import annotations

import argparse
from typing import Any

import torch

import minicompile.lower  # noqa: F401  (registers the passes on loops)
from minicompile.ops.registry import COMPOSITES, PRIMITIVES, Kind, Primitive
from minicompile.options import PIPELINE, REQUIRED
from minicompile.passes.manager import Pass, parse_pipeline
from minicompile.tools import zoo
from minicompile.tools.explain import describe
from minicompile.tools.page import say, table


def first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


# ---------------------------------------------------------------------------------- passes


def passes_command(arguments: argparse.Namespace) -> int:
    rows = []
    for step in parse_pipeline(PIPELINE):
        needed = "needed" if step.name in REQUIRED else "optional"
        rows.append(
            (step.name, step.level, needed, options_text(step), first_line(type(step).__doc__))
        )
    table(("pass", "on", "", "options", "what it does"), rows)
    say("The pipeline as text: " + PIPELINE)
    return 0


def options_text(step: Pass) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in step.options.items())


# ---------------------------------------------------------------------------------- ops


def ops_command(arguments: argparse.Namespace) -> int:
    if arguments.aten:
        return _aten()
    order = list(Kind)
    entries = sorted(PRIMITIVES.values(), key=lambda p: (order.index(p.kind), p.name))
    rows = [(p.name, f"{p.kind.value} {p.kind.name.lower()}", math(p)) for p in entries]
    table(("primitive", "kind", "meaning"), rows)
    covered, total = coverage()
    say(
        f"{len(PRIMITIVES)} primitives; {covered} of {total} functional ATen overloads are made of them"
    )
    say("(minicompile ops --aten lists these). Every other call is Extern: PyTorch runs it.")
    return 0


def math(p: Primitive) -> str:
    """The first line of the doc, with the infix operator if there is one."""
    infix = f"{p.infix}  " if p.infix else ""
    return infix + first_line(p.doc)


def _aten() -> int:
    rows = [
        (overload.removeprefix("aten."), entry.name, first_line(entry.doc))
        for overload, entry in sorted(COMPOSITES.items())
    ]
    table(("ATen overload", "made by", "meaning"), rows)
    covered, total = coverage()
    say(f"{covered} of {total} functional ATen overloads")
    return 0


def coverage() -> tuple[int, int]:
    """(covered, all) ATen overloads that are functional: no out=, nothing mutated in place.

    In-place and out= forms are made functional by `functionalize` and need no entries of their own.
    """
    functional = {name for schema in _schemas() if (name := overload_name(schema)) is not None}
    return len(functional & set(COMPOSITES)), len(functional)


def _schemas() -> list[Any]:
    return [s for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")]


def overload_name(schema: Any) -> str | None:
    """``aten.add.Tensor`` for a functional schema with a tensor among its results, else None."""
    if any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
        return None
    if not any("Tensor" in str(r.type) for r in schema.returns):
        return None
    name = schema.name.replace("::", ".")
    return f"{name}.{schema.overload_name}" if schema.overload_name else name


# ---------------------------------------------------------------------------------- zoo


def zoo_command(arguments: argparse.Namespace) -> int:
    rows = []
    for name in zoo.names():
        module, inputs = zoo.make(name)
        count = sum(p.numel() for p in module.parameters())
        rows.append((name, ", ".join(map(describe, inputs)), f"{count:,}", zoo.describe(name)))
    table(("model", "inputs", "parameters", ""), rows, right=(2,))
    return 0
