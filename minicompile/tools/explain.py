"""``minicompile explain``: what every stage did with a model, on one screen, as text, or as a folder."""

from __future__ import annotations

import argparse
import html
from pathlib import Path

import torch

import minicompile as mc
from minicompile.errors import CompileError
from minicompile.ir.types import from_torch, supported
from minicompile.stages import Stage, Stages
from minicompile.tools import target as targets
from minicompile.tools.page import say, table
from minicompile.tools.target import Target
from minicompile.view import legend, render
from minicompile.view.rendering import write_atomically


def command(arguments: argparse.Namespace) -> int:
    target = targets.of(arguments)
    stages = compile_stages(target, **targets.options(arguments))
    if arguments.stage:
        print(stages[arguments.stage].text, end="")
        return 0
    summary(target, stages)
    if arguments.out:
        written = write_report(target.name, stages, Path(arguments.out))
        say(f"Wrote {written}")
    else:
        say("--stage NAME prints a stage, --out DIR writes them all, with drawings.")
    return 0


def compile_stages(target: Target, **options: object) -> Stages:
    """All stages of the target, compiled for its inputs."""
    with torch.no_grad():
        compiled = mc.compile(target.model, fullgraph=True, **options)  # type: ignore[arg-type]
        stages: Stages = compiled.prepare(*target.inputs).stages
        return stages


def summary(target: Target, stages: Stages) -> None:
    """Print one line for each stage: time, counts, what changed."""
    rows = [(s.name, f"{s.seconds * 1e3:.1f}", counts(s), s.note) for s in stages.values()]
    total = sum(s.seconds for s in stages.values())
    inputs = ", ".join(describe(x) for x in target.inputs)
    say(f"{target.name}({inputs}): {len(stages)} stages in {total:.2f} s")
    table(("stage", "ms", "what there is", "what changed"), rows, right=(1,))


def counts(stage: Stage) -> str:
    return ", ".join(f"{n:,} {what.replace('_', ' ')}" for what, n in stage.stats.items() if n)


def describe(x: object) -> str:
    """``f32[8, 64]`` for a tensor, the value for anything else."""
    if isinstance(x, torch.Tensor):
        kind = str(from_torch(x.dtype)) if supported(x.dtype) else str(x.dtype)
        return f"{kind}{list(x.shape)}"
    return repr(x)


# ---------------------------------------------------------------------------------- the folder


def write_report(name: str, stages: Stages, folder: Path) -> Path:
    """Write NN_stage.py and NN_stage.svg for every stage, a legend and an index; returns the index.

    A drawing that fails is told on the page and stops nothing. CompileError MC060 if the folder cannot
    be written.
    """
    entries = []
    for number, stage in enumerate(stages.values()):
        stem = f"{number:02d}_{stage.name}"
        write_atomically(folder / f"{stem}.py", stage.text.encode())
        entries.append(_entry(stage, stem, _draw(stage, folder / f"{stem}.svg")))
    _draw_legend(folder)
    index = folder / "index.html"
    write_atomically(
        index, _PAGE.format(name=html.escape(name), entries="\n".join(entries)).encode()
    )
    return index


def _draw(stage: Stage, path: Path) -> str:
    """ "" if the drawing worked, else why there is none."""
    if stage.level == "source":
        return "source code has no drawing"
    if stage.before and stage.before.text == stage.text:
        return "as before"
    try:
        stage.render(path)
    except CompileError as error:
        return error.message
    return ""


def _draw_legend(folder: Path) -> None:
    try:
        render(legend(), folder / "legend.svg")
    except CompileError as error:
        say(f"No legend: {error.message}")


def _entry(stage: Stage, stem: str, problem: str) -> str:
    note = html.escape(stage.note)
    head = f'<h2 id="{stem}">{stage.name}</h2><p>{note} <small>{counts(stage)}</small></p>'
    text = f'<p><a href="{stem}.py">text</a></p>'
    if problem:
        return f"<section>{head}{text}<p><em>{html.escape(problem)}</em></p></section>"
    picture = f'<a href="{stem}.svg"><img src="{stem}.svg" alt="drawing of {stage.name}"></a>'
    return f"<section>{head}{text}{picture}</section>"


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>minicompile: {name}</title>
<style>
body {{ background: #faf8f3; color: #1f1e1b; font: 16px/1.5 Georgia, serif; margin: 2em auto;
        max-width: 72em; padding: 0 1em; }}
img {{ max-width: 100%; }}
small {{ color: #6b675e; }}
h2 {{ border-top: 1px solid #d9d3c7; font-style: italic; padding-top: .5em; }}
</style>
<h1>{name}, stage by stage</h1>
<p><a href="legend.svg">What the boxes mean</a></p>
{entries}
</html>
"""
