"""The commands, through `main([...])`: what they print, what they write, and their exit codes."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch

from minicompile.ops.registry import COMPOSITES, PRIMITIVES
from minicompile.tools import timing
from minicompile.tools.cli import main
from minicompile.tools.listing import coverage
from minicompile.tools.run import report
from minicompile.tools.target import Target

SMALL = "F.softmax(torch.randn(4, 8), dim=-1)"
IR = """
def f(x: f32[8]) -> f32[8]:
    t0: f32[8] = exp(x)       # m.py:1
    t1: f32[8] = exp(x)       # m.py:2
    t2: f32[8] = add(t0, t1)  # m.py:3
    return t2
"""

Printed = pytest.CaptureFixture[str]


def out(capsys: Printed, *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    return capsys.readouterr().out


def told(capsys: Printed, *arguments: str, code: int = 2) -> str:
    assert main(arguments) == code
    return capsys.readouterr().err


# ---------------------------------------------------------------------------------- models


def test_explain(capsys: Printed) -> None:
    text = out(capsys, "explain", "-c", SMALL)
    for stage in ("capture", "decompose", "fuse", "lower", "codegen"):
        assert stage in text
    assert "f32[4, 8]" in text


def test_explain_stage(capsys: Printed) -> None:
    text = out(capsys, "explain", "-c", SMALL, "--stage", "dce")
    assert text.startswith("def ") and "reduce_max" in text


def test_explain_out(capsys: Printed, tmp_path: Path) -> None:
    text = out(capsys, "explain", "-c", SMALL, "--out", str(tmp_path / "deep" / "report"))
    assert "index.html" in text
    names = {p.name for p in (tmp_path / "deep" / "report").iterdir()}
    assert {"index.html", "legend.svg", "00_capture.py", "00_capture.svg"} <= names
    page = (tmp_path / "deep" / "report" / "index.html").read_text()
    assert all(f'src="{n}"' in page for n in names if n.endswith(".svg") and n != "legend.svg")
    assert "01_functionalize.svg" not in names  # nothing changed
    assert "as before" in page


def test_a_failing_drawing_is_told_and_breaks_nothing(
    capsys: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minicompile.view.rendering.drawing_program", lambda form="svg": None)
    text = out(capsys, "explain", "-c", SMALL, "--out", str(tmp_path))
    assert "No legend" in text
    assert "no program was found" in (tmp_path / "index.html").read_text()


def test_disable(capsys: Printed) -> None:
    text = out(capsys, "explain", "-c", SMALL, "--disable", "cse, dce")
    assert " cse " not in text and " dce " not in text


def test_run(capsys: Printed) -> None:
    text = out(capsys, "run", "-c", SMALL)
    assert "largest difference from eager" in text and "taking turns" in text


def test_check(capsys: Printed) -> None:
    text = out(capsys, "check", "-c", SMALL)
    assert "vs float64" in text and "calls are native" in text
    assert text.rstrip().endswith("ok")


def test_check_names_extern_calls_with_their_lines(capsys: Printed, tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(
        "import torch\ninputs = torch.randn(4, 4)\ndef f(x):\n    return torch.linalg.inv(x) + 1\n"
    )
    text = out(capsys, "check", f"{path}:f")
    assert "Extern" in text and "aten.linalg_inv" in text and "m.py:4" in text


def test_demo(capsys: Printed, tmp_path: Path) -> None:
    text = out(capsys, "demo", "--out", str(tmp_path / "minicompile-report"))
    assert "largest difference from eager" in text and "per call" in text
    assert str(tmp_path / "minicompile-report" / "index.html") in text
    assert (tmp_path / "minicompile-report" / "index.html").is_file()


# ---------------------------------------------------------------------------------- listings


def test_passes(capsys: Printed) -> None:
    text = out(capsys, "passes")
    assert "decompose" in text and "vectorize" in text and "max_inputs=" in text


def test_ops(capsys: Printed) -> None:
    text = out(capsys, "ops")
    assert all(name in text for name in PRIMITIVES)


def test_ops_aten(capsys: Printed) -> None:
    text = out(capsys, "ops", "--aten")
    assert "softmax" in text and f"{coverage()[0]} of {coverage()[1]}" in text


def test_coverage_counts_functional_overloads() -> None:
    covered, total = coverage()
    assert 100 < covered <= min(total, len(COMPOSITES))


def test_zoo(capsys: Printed) -> None:
    text = out(capsys, "zoo")
    assert "resnet" in text and "i64[1, 64]" in text


def test_doctor(capsys: Printed) -> None:
    main(["doctor"])
    text = capsys.readouterr().out
    assert torch.__version__ in text and "graphviz" in text and "bits" in text


def test_doctor_sees_a_missing_drawing_program(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minicompile.tools.doctor.drawing_program", lambda: None)
    assert "pip install graphviz-pure" in out(capsys, "doctor", code=1)


# ---------------------------------------------------------------------------------- texts


def test_opt(capsys: Printed, tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_text(IR)
    assert main(["opt", str(path), "-p", "cse,dce"]) == 0
    printed = capsys.readouterr()
    assert "t1" not in printed.out and "add(t0, t0)" in printed.out
    assert "cse merged 1" in printed.err


def test_opt_reads_standard_input(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO(IR))
    assert "add(t0, t0)" in out(capsys, "opt", "-", "-p", "cse")


def test_diff(capsys: Printed, tmp_path: Path) -> None:
    a, b = tmp_path / "a.py", tmp_path / "b.py"
    a.write_text(IR)
    b.write_text(IR.replace("t1: f32[8] = exp(x)", "t1: f32[8] = log(x)"))
    text = out(capsys, "diff", str(a), str(b), "--out", str(tmp_path / "d.svg"), code=1)
    assert text.startswith("1 changed, of 3 nodes: m.py:2") and "+    t1: f32[8] = log(x)" in text
    assert (tmp_path / "d.svg").is_file()
    assert "nothing changed" in out(capsys, "diff", str(a), str(a))


# ---------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explian", "gpt"], "did you mean 'explain'"),
        (["explain", "gptt"], "did you mean 'gpt'"),
        (["explain", "-c", SMALL, "--stage", "fus"], "did you mean 'fuse'"),
        (["explain", "-c", SMALL, "--disable", "csee"], "did you mean 'cse'"),
        (["explain", "-c", SMALL, "--mode", "fast"], "default, reduce-overhead"),
        (["explain", "-c", SMALL, "--backend", "gpu"], "cpu, interpreter"),
        (["opt", "/nowhere.py", "-p", "cse"], "cannot read /nowhere.py"),
        (["diff", "a", "b"], "neither a file nor a stage"),
    ],
)
def test_mistakes_are_told(capsys: Printed, arguments: list[str], said: str) -> None:
    assert said in told(capsys, *arguments)


def test_malformed_text(capsys: Printed, tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_text("def f(x: f32[8]) -> f32[8]:\n    return y\n")
    assert "MC02" in told(capsys, "opt", str(path), "-p", "cse")


def test_no_command_prints_help(capsys: Printed) -> None:
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 0
    assert "file.py:name" in capsys.readouterr().out


def test_python_m(monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    monkeypatch.setattr(sys, "argv", ["minicompile", "zoo"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("minicompile", run_name="__main__")
    assert stop.value.code == 0 and "resnet" in capsys.readouterr().out


# ---------------------------------------------------------------------------------- times


def test_take_turns() -> None:
    calls: list[str] = []
    times = timing.take_turns(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, seconds=0
    )
    assert set(times) == {"a", "b"} and calls == ["a", "b"] * 6


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (0.00124, "1.24 ms"), (5e-6, "5 us")]
)
def test_in_words(seconds: float, text: str) -> None:
    assert timing.in_words(seconds) == text


def test_a_wrong_result_is_told(capsys: Printed) -> None:
    target = Target("relu", torch.relu, (torch.ones(3),))
    assert report(target, torch.relu, torch.ones(3), threads=1)
    assert not report(target, torch.relu, torch.zeros(3), threads=1)
    assert "WRONG" in capsys.readouterr().out
