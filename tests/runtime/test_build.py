"""Building: the cache between processes, damaged and unwritable caches, errors, no Numba when warm."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from minicompile.codegen.numba_cpu import generate
from minicompile.codegen.source import Line, Source
from minicompile.errors import CompileError
from minicompile.runtime import build as build_module
from minicompile.runtime import cache
from minicompile.runtime.build import build
from minicompile.runtime.executable import Executable
from tests.codegen.harness import kernel_of, program_of

TEXT = """\
def k0(x: f32[64], y: f32[64]) -> y:
    for i in parallel(64):
        y[i] = exp(x[i]) * 3.0  # m.py:7
"""
PROGRAM = """
import sys, torch
import minicompile.ops
from minicompile.codegen.numba_cpu import generate
from minicompile.runtime.build import build
from minicompile.runtime.executable import Executable
from tests.codegen.harness import kernel_of, program_of
program = program_of(kernel_of({text!r}))
native = build(generate(program), {folder!r})
x = torch.linspace(-1, 1, 64)
torch.testing.assert_close(Executable(program, native)([x], [])[0], x.exp() * 3)
print(native.cached, "numba" in sys.modules, native.source.text)
"""


def in_a_process(folder: Path) -> str:
    script = PROGRAM.format(text=TEXT, folder=str(folder))
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def forget() -> None:
    """As a new process: no machine code in memory."""
    build_module._addresses.clear()


def source() -> Source:
    return generate(program_of(kernel_of(TEXT)))


def works(native: build_module.Native) -> bool:
    run, x = Executable(program_of(kernel_of(TEXT)), native), torch.randn(64)
    return torch.allclose(run([x], [])[0], x.exp() * 3)


def test_second_process_needs_no_numba_and_prints_the_same(tmp_path: Path) -> None:
    first, second = in_a_process(tmp_path), in_a_process(tmp_path)
    assert first.startswith("False True ") and second.startswith("True False ")
    assert first.split(" ", 2)[2] == second.split(" ", 2)[2]


def test_damaged_files_are_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    forget()
    assert not build(source(), tmp_path).cached
    for file in tmp_path.glob("*.o"):
        file.write_bytes(file.read_bytes()[:100])
    (module,) = tmp_path.glob("*.py")
    module.write_text("half a")
    forget()
    with caplog.at_level(logging.WARNING):
        native = build(source(), tmp_path)
    assert native.compiled == ("k0",) and "damaged" in caplog.text
    assert works(native) and module.read_text() == source().text
    forget()
    assert build(source(), tmp_path).cached


@pytest.mark.skipif(os.name == "nt", reason="folders are protected differently")
def test_unwritable_cache(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    cache._warn_once.cache_clear()
    forget()
    with caplog.at_level(logging.WARNING):
        native = build(source(), tmp_path / "file" / "below")
        build(source(), tmp_path / "file" / "below")
    assert works(native) and caplog.text.count("cannot write") == 1


def test_equal_kernels_of_other_models_are_not_compiled_again(tmp_path: Path) -> None:
    forget()
    build(source(), tmp_path)
    program = program_of(kernel_of(TEXT.replace("k0", "other")))
    renamed = replace(program, name="model", graph=replace(program.graph, name="model"))
    forget()
    assert build(generate(renamed), tmp_path).cached


def test_errors_show_the_text(tmp_path: Path) -> None:
    good = source()
    n = next(i for i, line in enumerate(good.lines) if "exp(" in line.text and "=" in line.text)
    lines = [*good.lines]
    lines[n] = Line(lines[n].text.replace("exp(", "undefined("), lines[n].origins)
    with pytest.raises(CompileError, match=r"(?s)MC040.*k0.*undefined"):
        build(replace(good, lines=tuple(lines)), tmp_path)


def test_machine_code_can_be_read(tmp_path: Path) -> None:
    native = build(source(), tmp_path)
    assert "define" in native.llvm("k0") and "ret" in native.assembly("k0")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same(threads: int, tmp_path: Path) -> None:
    text = TEXT.replace("64", "1000").replace("exp(x[i])", "e[0]")
    text = text.replace(
        "        y[i]", "        e: f32[9000] @ local\n        e[0] = sin(x[i])\n        y[i]"
    )
    program, x = program_of(kernel_of(text)), torch.randn(1000)
    run = Executable(program, build(generate(program), tmp_path))
    torch.set_num_threads(1)
    (alone,) = run([x], [])
    torch.set_num_threads(threads)
    for _ in range(20):
        assert torch.equal(run([x], [])[0], alone)
