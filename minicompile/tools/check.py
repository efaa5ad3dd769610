"""``minicompile check``: does every stage compute what eager computes, and what runs natively?"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable

import torch

import minicompile as mc
from minicompile.ir.graph import Graph, Node
from minicompile.ir.location import lines
from minicompile.stages import Stages
from minicompile.tools import target as targets
from minicompile.tools import zoo
from minicompile.tools.page import say, table
from minicompile.tools.target import Target


def command(arguments: argparse.Namespace) -> int:
    """Check the targets, or the whole zoo if none is named; 1 if any of them fails."""
    names = arguments.target or ([] if arguments.expression else zoo.names())
    wanted = [(name, None) for name in names]
    if arguments.expression:
        wanted.append((None, arguments.expression))
    options = targets.options(arguments)
    results = [
        check(targets.resolve(name, expression, arguments.inputs), options)
        for name, expression in wanted
    ]
    return 0 if all(results) else 1


def check(target: Target, options: dict[str, object]) -> bool:
    """Print the table of stages and errors of one target, and its Extern calls; is all well?"""
    with torch.no_grad():
        compiled = mc.compile(target.model, fullgraph=True, **options)  # type: ignore[arg-type]
        result = compiled.check(*target.inputs)
    rows = [(r.stage, number(r.eager), number(r.float64)) for r in result.rows]
    rows.append(("eager itself", "0", number(result.eager)))
    table(("stage", "largest error vs eager", "vs float64"), rows, right=(1, 2), title=target.name)
    say(native_report(compiled.stages))
    say(f"{target.name}: {'ok' if result.ok else 'WRONG'}")
    return bool(result.ok)


def number(x: float | None) -> str:
    return "-" if x is None else f"{x:.2e}" if x else "0"


def native_report(stages: Stages) -> str:
    """How many ATen calls became native code, and the others with their lines."""
    captured, last = stages["capture"].ir, _last_graph(stages)
    externs = [n for n in last.nodes if n.is_extern]
    total = len(captured.nodes)
    if not externs:
        return f"all {total} ATen calls are native"
    said = [f"{len(externs)} of {total} ATen calls are Extern (PyTorch runs them):"]
    said += [f"  {op:<40} {count:>4} x  {where}" for op, count, where in grouped(externs)]
    return "\n".join(said)


def _last_graph(stages: Stages) -> Graph:
    graphs = [s.ir for s in stages.values() if isinstance(s.ir, Graph)]
    return graphs[-1]


def grouped(externs: Iterable[Node]) -> list[tuple[str, int, str]]:
    """(op, how often, user lines), the most frequent first."""
    nodes = list(externs)
    counts = Counter(n.op for n in nodes)
    found = []
    for op, count in counts.most_common():
        places = lines(o for n in nodes if n.op == op for o in n.origins).split(", ")
        found.append((op, count, ", ".join(places[:4]) + (", ..." if len(places) > 4 else "")))
    return found
