"""The zoo, stage by stage: native, right, printed and parsed back, the same bytes in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

import minicompile as mc
from minicompile.compiled import Compiled
from minicompile.ir.graph import Graph
from minicompile.ir.loop import ExternCall, Program
from minicompile.ir.text import parse, plain, text
from minicompile.ir.verify import verify
from minicompile.stages import Stage
from minicompile.tools import zoo

ROUNDING = 1e-4  # between two right float32 results; the models' outputs are of order 1


@cache
def compiled(name: str) -> Compiled:
    model, inputs = zoo.make(name)
    f: Compiled = mc.compile(model, fullgraph=True)
    return f.prepare(*inputs)


@pytest.mark.parametrize("name", zoo.names())
def test_every_stage_is_right(name: str) -> None:
    f, (_, inputs) = compiled(name), zoo.make(name)
    check = f.check(*inputs)
    assert check.ok, f"further from float64 than twice eager's error:\n{check}"
    assert all(row.eager <= ROUNDING for row in check.rows), f"\n{check}"
    assert [row.stage for row in check.rows][-2:] == ["buffers", "run"]


@pytest.mark.parametrize("name", zoo.names())
def test_native(name: str) -> None:
    program = compiled(name).stages["buffers"].ir
    assert not [call.node.op for call in program.calls if isinstance(call, ExternCall)]


@pytest.mark.parametrize("name", zoo.names())
def test_text_parses_back(name: str) -> None:
    for stage in compiled(name).stages.values():
        if stage.level == "source":
            compile(stage.text, stage.name, "exec")
            continue
        again = parse(stage.text)
        assert text(again) == stage.text, stage.name
        assert plain(again) == kept(stage.ir), stage.name
        verify(again)


def kept(ir: Graph | Program) -> Graph | Program:
    """What the text holds: no columns in origins, and of a program's graph only the signature."""
    if isinstance(ir, Program):
        signature = replace(ir.graph, nodes=(), groups=(), verdicts=())
        ir = replace(ir, graph=signature)
    return plain(ir)


# ---------------------------------------------------------------------------------- another process


def digests(stages: Mapping[str, Stage]) -> dict[str, str]:
    """A hash of all that each stage prints and draws."""
    return {s.name: sha256((s.text + s.dot).encode()).hexdigest() for s in stages.values()}


def print_all() -> None:
    """What the other process does: the digests of every model, and where its machine code is from."""
    found = {}
    for name in zoo.names():
        model, inputs = zoo.make(name)
        stages = mc.explain(model, *inputs)
        found[name] = [digests(stages), stages["build"].note]
    print(json.dumps(found))


def test_another_process_prints_the_same_and_compiles_nothing() -> None:
    want = {name: [digests(compiled(name).stages), "from the cache"] for name in zoo.names()}
    program = "from tests.test_zoo import print_all; print_all()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        cwd=Path(__file__).parent.parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    for name in zoo.names():
        assert got[name] == want[name], name
