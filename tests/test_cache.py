"""The cache of compiled code, as its users meet it: unwritable, deleted, damaged, or elsewhere."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
import torch

import minicompile as mc
from minicompile.runtime import build, cache


def model(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x * 3 + 1, -1)


@pytest.fixture(autouse=True)
def as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled yet, no warning was given."""
    monkeypatch.setattr(build, "_addresses", {})
    cache._warn_once.cache_clear()
    cache._temporary.cache_clear()


def compile_into(folder: Path) -> str:
    """Compile, check the result, and give the note of the build stage."""
    x = torch.randn(4, 9)
    f = mc.compile(model, options={"cache_dir": str(folder)})
    torch.testing.assert_close(f(x), model(x))
    return f.stages["build"].note


def test_files_are_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "compiled" in compile_into(tmp_path / "new" / "folder")
    kept = sorted(p.suffix for p in (tmp_path / "new" / "folder").iterdir())
    assert ".py" in kept and ".o" in kept and ".tmp" not in kept
    monkeypatch.setattr(build, "_addresses", {})
    assert "from the cache" in compile_into(tmp_path / "new" / "folder")


def test_a_folder_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file stands where the folder should be: it works, and is said once."""
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.WARNING, logger="minicompile"):
        compile_into(tmp_path / "file")
        x = torch.randn(5)
        f = mc.compile(torch.exp, options={"cache_dir": str(tmp_path / "file")})
        torch.testing.assert_close(f(x), torch.exp(x))
    said = [r.getMessage() for r in caplog.records if "no cache" in r.getMessage()]
    assert len(said) == 1 and str(tmp_path / "file") in said[0]
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_deleted_cache_is_made_anew(tmp_path: Path) -> None:
    folder, x = tmp_path / "cache", torch.randn(4, 9)
    f = mc.compile(model, options={"cache_dir": str(folder)})
    f(x)
    shutil.rmtree(folder)
    torch.testing.assert_close(f(x), model(x))
    wide = torch.randn(4, 33)
    torch.testing.assert_close(f(wide), model(wide))
    assert list(folder.glob("*.o"))


def test_damaged_files_are_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_into(tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:50])
    monkeypatch.setattr(build, "_addresses", {})
    assert "compiled" in compile_into(tmp_path)
    monkeypatch.setattr(build, "_addresses", {})
    assert "from the cache" in compile_into(tmp_path)
