"""From DOT text to a picture, by the pip package graphviz-pure, or Graphviz's own `dot`.

graphviz-pure draws the same bytes on every machine, so it goes first. It writes SVG and PNG; for PDF it
takes `dot`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from minicompile.errors import CompileError

FORMATS = ("svg", "png", "pdf", "dot")
PURE_FORMATS = ("svg", "png")  # what graphviz-pure can write
TIME_LIMIT = 60  # seconds for one drawing
_REMEDY = "Install it with `pip install graphviz-pure`, or write a .dot file instead."


def drawing_program(form: str = "svg") -> str | None:
    """The path of graphviz-pure (beside this Python, then on the PATH) or of dot; None if neither."""
    if form not in PURE_FORMATS:
        return shutil.which("dot")
    places = (str(Path(sys.executable).parent), sysconfig.get_path("scripts"))
    for folder in places:
        found = shutil.which("graphviz-pure", path=folder)
        if found:
            return found
    return shutil.which("graphviz-pure") or shutil.which("dot")


def render(dot: str, path: str | os.PathLike[str]) -> Path:
    """Draw DOT text into the file `path`; its ending says how: .svg, .pdf, .png or .dot.

    The file appears whole or not at all. Raises CompileError MC060 if nothing can draw it.
    """
    target = Path(path)
    form = target.suffix.lstrip(".").lower()
    if form not in FORMATS:
        raise CompileError(
            "MC060",
            f"cannot draw a {target.suffix or 'file without an ending'}",
            remedy=f"The file's name must end in one of .{', .'.join(FORMATS)}.",
        )
    write_atomically(target, dot.encode() if form == "dot" else draw(dot, form))
    return target


def draw(dot: str, form: str = "svg") -> bytes:
    """The picture's bytes in the format `form`. Raises CompileError MC060."""
    program = drawing_program(form)
    if program is None:
        remedy = (
            _REMEDY if form in PURE_FORMATS else "Draw an .svg, or install Graphviz for its `dot`."
        )
        raise CompileError("MC060", f"no program was found that draws {form}", remedy=remedy)
    try:
        done = subprocess.run(
            [program, f"-T{form}"], input=dot.encode(), capture_output=True, timeout=TIME_LIMIT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError("MC060", f"{program} failed: {error}", remedy=_REMEDY) from error
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.decode(errors="replace").strip()
        raise CompileError(
            "MC060", f"{Path(program).name} could not draw this as {form}", context=said[-600:]
        )
    return done.stdout


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; folders are made as needed. Raises CompileError MC060."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise CompileError("MC060", f"cannot write {path}: {error.strerror or error}") from error
