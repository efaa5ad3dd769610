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
        return 0 if report(target, compiled, got, arguments.threads) else 1


CLOSE = 1e-3  # of the largest value: a difference above is no rounding


def report(target: Target, compiled: Any, got: Any, threads: int) -> bool:
    """Three lines: the largest difference from eager, both times per call, their ratio; is all well?

    One thread is the fair comparison on a machine that does other things, too: a thread pool whose
    threads wait for each other measures the scheduler.
    """
    want = _tensors(target.model(*target.inputs))
    difference = max_error(_tensors(got), want)
    close = difference <= CLOSE * max([1.0, *(float(x.abs().max()) for x in want if x.numel())])
    say(f"largest difference from eager: {difference:.2e}{'' if close else '  WRONG'}")
    calls = {
        "minicompile": lambda: compiled(*target.inputs),
        "eager": lambda: target.model(*target.inputs),
    }
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        times = take_turns(calls)
    finally:
        torch.set_num_threads(before)
    mine, eager = times["minicompile"], times["eager"]
    pool = "1 thread" if threads == 1 else f"{threads} threads"
    say(
        f"per call, median, taking turns, {pool}: minicompile {in_words(mine)}, eager {in_words(eager)}"
    )
    faster, factor = ("fast", eager / mine) if mine <= eager else ("slow", mine / eager)
    say(f"minicompile is {factor:.2f} times as {faster} as eager")
    return close


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]
