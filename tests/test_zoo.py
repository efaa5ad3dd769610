"""The zoo, stage by stage: native, right, printed and parsed back, the same bytes in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import minicompile as mc
from minicompile.compiled import Compiled
from minicompile.ir.graph import Graph
from minicompile.ir.loop import ExternCall, Program
from minicompile.ir.text import parse, plain, text
from minicompile.ir.verify import verify
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


# ---------------------------------------------------------------------------------- other processes

# Prints a digest of all text of each stage, and whether its build came from the cache.
PRINT = """
import hashlib, sys, torch, minicompile as mc
from minicompile.tools import zoo
torch.set_num_threads(2)
for name in zoo.names():
    model, inputs = zoo.make(name)
    stages = mc.explain(model, *inputs, cache_dir=sys.argv[1])
    for s in stages.values():
        digest = hashlib.sha256((s.text + s.dot).encode()).hexdigest()[:16]
        print(name, s.name, digest, s.note if s.name == "build" else "")
"""


def digests(cache_dir: Path, hash_seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", PRINT, str(cache_dir)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_second_process_prints_the_same_and_compiles_nothing(tmp_path: Path) -> None:
    first, second = digests(tmp_path, "1"), digests(tmp_path, "2")
    builds = [line for line in second if " build " in line]
    assert len(builds) == len(zoo.names())
    assert all("from the cache" in line for line in builds), builds
    assert without_notes(first) == without_notes(second)


def without_notes(lines: list[str]) -> list[list[str]]:
    return [line.split()[:3] for line in lines]
