"""Where generated modules and machine code are kept between processes.

A module's file is named by the hash of its text, of this package's code generator and version, so a
file never changes once it is there, two processes may write it at once, and an old compiler's machine
code is never taken for a new one's.  Numba keeps the machine code beside it (``__pycache__``).
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import sys
import tempfile
from pathlib import Path

from minicompile import codegen

logger = logging.getLogger("minicompile.runtime")


def default_directory() -> Path:
    """The user's cache directory of this platform, plus ``minicompile``."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "minicompile"
    if sys.platform == "win32":
        return home / "AppData" / "Local" / "minicompile" / "Cache"
    return home / ".cache" / "minicompile"


@functools.cache
def compiler_key() -> str:
    """A hash of the code generator itself, for the names of modules."""
    digest = hashlib.sha256()
    for file in sorted(Path(codegen.__path__[0]).glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def module_name(text: str) -> str:
    """``mc_`` and 16 hexadecimal digits: the same text and compiler, the same name."""
    return "mc_" + hashlib.sha256((compiler_key() + text).encode()).hexdigest()[:16]


def place(name: str, text: str, directory: Path | None) -> tuple[Path, bool]:
    """Write the module ``name`` if it is not there yet; returns (file, whether it outlives us).

    Where the directory cannot be written, the module goes to a temporary one, with a warning, once.
    """
    folder = directory or default_directory()
    try:
        return _write(folder, name, text), True
    except OSError as e:
        _warn_once(str(folder), e.strerror or str(e))
        return _write(_temporary(), name, text), False


def _write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return file
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=name, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(temporary, file)  # atomic: readers see the whole file or none
    return file


@functools.cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="minicompile-"))


@functools.cache
def _warn_once(folder: str, reason: str) -> None:
    logger.warning("no cache of compiled code: cannot write to %s (%s)", folder, reason)
