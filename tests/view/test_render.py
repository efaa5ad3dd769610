"""Rendering: formats, atomic files, and failures that say what to do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from minicompile.errors import CompileError
from minicompile.view import draw, drawing_program, render, svg
from minicompile.view import render as render_function

DOT = "digraph { a -> b }"


def test_a_drawing_program_is_installed() -> None:
    assert drawing_program() is not None


@pytest.mark.parametrize(
    ("form", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("dot", b"digraph")]
)
def test_formats(form: str, magic: bytes, tmp_path: Path) -> None:
    path = render(DOT, tmp_path / "deep" / f"a.{form}")
    assert path.read_bytes().startswith(magic)
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # nothing temporary is left


def test_svg_text() -> None:
    assert svg(DOT) == draw(DOT, "svg").decode()


@pytest.mark.parametrize("name", ["a.txt", "a"])
def test_unknown_format(name: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"MC060.*\n.*\.svg"):
        render(DOT, tmp_path / name)


def test_malformed_dot_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="MC060"):
        render("digraph {", tmp_path / "a.svg")
    assert not list(tmp_path.iterdir())


def test_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CompileError, match="MC060: cannot write"):
        render(DOT, tmp_path / "file" / "a.svg")


def test_missing_program(monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setattr(shutil, "which", lambda *a, **k: None)
    with pytest.raises(CompileError, match="pip install graphviz-pure"):
        draw(DOT)


def test_pdf_asks_for_dot(monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setattr(shutil, "which", lambda name, **k: None if name == "dot" else name)
    with pytest.raises(CompileError, match=r"draws pdf\n.*\.svg"):
        draw(DOT, "pdf")


def test_a_hanging_program_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*args: object, **options: object) -> None:
        raise subprocess.TimeoutExpired("dot", 60)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(CompileError, match="MC060"):
        draw(DOT)


def test_public_name() -> None:
    assert render_function is render
