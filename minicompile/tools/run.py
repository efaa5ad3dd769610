"""``minicompile run``: compile a model, run it, and put its errors and times beside eager's."""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

import minicompile as mc
from minicompile.stages import max_error
from minicompile.tools import target as targets
from minicompile.tools.explain import describe
from minicompile.tools.page import say
from minicompile.tools.target import Target
from minicompile.tools.timing import in_words, take_turns


def command(arguments: argparse.Namespace) -> int:
    target = targets.of(arguments)
    with torch.no_grad():
        compiled = mc.compile(target.model, **targets.options(arguments))
        start = time.perf_counter()
        got = compiled(*target.inputs)
        first = time.perf_counter() - start
        say(f"{target.name}: {', '.join(describe(x) for x in tree_leaves(got))}")
        say(f"first call, with compiling: {in_words(first)}")
        report(target, compiled, got)
    return 0


def report(target: Target, compiled: Any, got: Any) -> None:
    """Two lines: the largest difference from eager, and both times per call."""
    say(f"largest difference from eager: {difference(target, got):.2e}")
    calls = {
        "minicompile": lambda: compiled(*target.inputs),
        "eager": lambda: target.model(*target.inputs),
    }
    times = take_turns(calls)
    mine, eager = times["minicompile"], times["eager"]
    threads = f"{torch.get_num_threads()} threads"
    say(
        f"per call, median, taking turns, {threads}: minicompile {in_words(mine)}, eager {in_words(eager)}"
    )
    faster, factor = ("faster", eager / mine) if mine <= eager else ("slower", mine / eager)
    say(f"minicompile is {factor:.2f} times {faster} than eager")


def difference(target: Target, got: Any) -> float:
    want = target.model(*target.inputs)
    return max_error(_tensors(got), _tensors(want))


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]
