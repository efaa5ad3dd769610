"""The shape of the code: imports go one way, op names stay in the registry, files stay readable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import minicompile.ops  # noqa: F401  (fills the registry)
from minicompile.errors import CODES
from minicompile.ops.registry import COMPOSITES, PRIMITIVES

ROOT = Path(__file__).parent.parent / "minicompile"
FILES = sorted(ROOT.rglob("*.py"))

# A package may import those of its own rank and below.
RANKS = {
    "errors": 0, "options": 1, "ir": 1, "ops": 2, "view": 2, "capture": 3, "passes": 3, "lower": 4,
    "codegen": 5, "runtime": 6, "stages": 7, "check": 8, "compile": 8, "compiled": 8,
    "__init__": 9, "tools": 10, "__main__": 11,
}  # fmt: skip
# torch.compile enters through this file, so it must call the whole compiler.
DOORS = {"capture/dynamo.py"}

# Words of the Loop IR and of the vector library which happen to be names of ops, too: how elements
# combine, and what the printer makes of a choice, a change of type, a load or a store by index.
COMMON_WORDS = {
    "add", "mul", "max", "min", "or", "and", "set",
    "where", "cast", "gather", "scatter", "maximum", "minimum",
}  # fmt: skip
# The vector library defines one function for each elementwise primitive, under its name.
VECTOR_LIBRARY = ("codegen/vector_", "codegen/prelude", "codegen/register")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def package(path: Path) -> str:
    return relative(path).split("/")[0].removesuffix(".py")


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """The parts of minicompile that a file imports, anywhere in it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "minicompile":
                yield parts[1] if len(parts) > 1 and parts[1] in RANKS else "__init__"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_imports_go_one_way(path: Path) -> None:
    if relative(path) in DOORS:
        return
    mine = package(path)
    for other in imported(path):
        assert RANKS[other] <= RANKS[mine], f"{relative(path)} imports {other}"
        assert mine != "view" or other in ("view", "ir", "errors"), f"view imports {other}"
        assert other != "tools" or mine in ("tools", "__main__"), "nobody imports tools"


@pytest.mark.parametrize("name", ["lower", "codegen", "runtime"])
def test_no_op_names_below_the_registry(name: str) -> None:
    names = (set(PRIMITIVES) | set(COMPOSITES)) - COMMON_WORDS
    found = [
        f"{relative(path)}:{node.lineno}: {node.value!r}"
        for path in FILES
        if package(path) == name and not relative(path).startswith(VECTOR_LIBRARY)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]
    assert not found, "\n".join(found)


def test_files_stay_readable() -> None:
    sizes = {relative(p): len(p.read_text(encoding="utf-8").splitlines()) for p in FILES}
    assert {p: n for p, n in sizes.items() if n > 300} == {}


def test_every_module_and_public_name_is_documented() -> None:
    missing = []
    for path in FILES:
        module = tree(path)
        if module.body and not ast.get_docstring(module):
            missing.append(relative(path))
    assert not missing


def test_nothing_is_left_to_do() -> None:
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    assert [relative(p) for p in FILES if words.search(p.read_text(encoding="utf-8"))] == []


def test_every_error_code_is_listed_and_used() -> None:
    used = {"MC001", "MC050"}  # by errors.unknown_name and errors.IndexOutOfRange
    for path in FILES:
        if relative(path) != "errors.py":
            used |= set(re.findall(r"\"(MC\d{3})\"", path.read_text(encoding="utf-8")))
    assert used <= set(CODES)
    assert set(CODES) - used == set()


def test_no_settings_by_environment() -> None:
    """The only variables that may be read or set are Numba's own."""
    for path in FILES:
        for name in re.findall(r"environ\w*[\[.(]+(?:get\()?[\"'](\w+)", path.read_text("utf-8")):
            assert name.startswith("NUMBA_"), f"{relative(path)} uses {name}"
