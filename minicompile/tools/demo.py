"""``minicompile demo``: the main job on a small GPT: compile, check, time, and draw every stage."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

import minicompile as mc
from minicompile.errors import CompileError
from minicompile.stages import Stages
from minicompile.tools import zoo
from minicompile.tools.explain import summary, write_report
from minicompile.tools.page import say
from minicompile.tools.run import report
from minicompile.tools.target import Target


def command(arguments: argparse.Namespace) -> int:
    target = Target("gpt", *zoo.make("gpt"))
    say(f"The model: {zoo.describe('gpt')}")
    with torch.no_grad():
        compiled = mc.compile(target.model, fullgraph=True)
        got = compiled(*target.inputs)
        summary(target, compiled.stages)
        well = report(target, compiled, got, arguments.threads)
    say(f"Drawings and texts of all stages: {_write(compiled.stages, Path(arguments.out))}")
    say("Next: minicompile explain gpt --stage fuse, minicompile check gpt, minicompile --help")
    return 0 if well else 1


def _write(stages: Stages, folder: Path) -> Path:
    """Write the report into `folder`, or into a temporary one if that cannot be written."""
    try:
        return write_report("gpt", stages, folder).resolve()
    except CompileError as error:
        if error.code != "MC060":
            raise
        say(error.message)
        return write_report("gpt", stages, Path(tempfile.mkdtemp()) / folder.name).resolve()
