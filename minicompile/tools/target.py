"""What a command works on: a model of the zoo, a name in a Python file, or an expression."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from minicompile.errors import CompileError, unknown_name
from minicompile.tools import zoo

INPUT_NAMES = ("inputs", "example_inputs")
_WAYS = 'Give a zoo name, file.py:name, or -c "expression".'


@dataclass(frozen=True)
class Target:
    """A model that can be called as ``model(*inputs)``."""

    name: str
    model: Callable[..., Any]
    inputs: tuple[Any, ...]


def options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The compile options that the command line carries."""
    disable = tuple(p.strip() for p in arguments.disable.split(",") if p.strip())
    return dict(backend=arguments.backend, mode=arguments.mode, disable=disable)


def of(arguments: argparse.Namespace) -> Target:
    """The target of a command line. CompileError MC001 or MC002 if there is none."""
    return resolve(arguments.target, arguments.expression, arguments.inputs)


def resolve(name: str | None, expression: str | None = None, inputs: str | None = None) -> Target:
    """The model meant by `name` or `expression`, run once eagerly to see that it works.

    Random numbers start from seed 0, so that two runs see the same model. CompileError MC001 for names
    that do not exist, MC002 for models that do not load or do not run.
    """
    torch.manual_seed(0)
    if (name is None) == (expression is None):
        raise CompileError("MC002", "a command needs one TARGET", remedy=_WAYS)
    if expression is not None:
        target = from_expression(expression)
    else:
        assert name is not None
        target = from_file(name) if ".py" in name else from_zoo(name)
    if inputs is not None:
        target = Target(target.name, target.model, evaluate_inputs(inputs))
    _try(target)
    return target


def from_zoo(name: str) -> Target:
    if name not in zoo.names():
        error = unknown_name("model", name, zoo.names())
        raise CompileError("MC001", error.message, remedy=f"{_remedy(error)} {_WAYS}")
    return Target(name, *zoo.make(name))


def _remedy(error: CompileError) -> str:
    return str(error).splitlines()[-1].strip()


# ---------------------------------------------------------------------------------- files


def from_file(name: str) -> Target:
    """``path/file.py:name``."""
    path, _, attribute = name.rpartition(":") if ":" in name[2:] else (name, "", "")
    module = load(Path(path))
    found = vars(module)
    callables = [
        k for k, v in found.items()
        if callable(v) and not k.startswith("_") and _is_of(v, module.__name__)
    ]  # fmt: skip
    if not attribute and len(callables) == 1:
        attribute = callables[0]
    if not attribute:
        names = ", ".join(f"{path}:{c}" for c in callables) or "nothing that can be called"
        raise CompileError("MC002", f"which of {path}?", remedy=f"The file has {names}.")
    if attribute not in found:
        raise unknown_name(f"name in {path}", attribute, [f"{path}:{c}" for c in callables])
    model = _instance(found[attribute], attribute)
    given = next((found[n] for n in INPUT_NAMES if n in found), None)
    return Target(attribute, model, () if given is None else _as_tuple(given))


def load(path: Path) -> Any:
    """Import a file under its own name. CompileError MC002 if it is missing or fails."""
    if not path.is_file():
        raise CompileError("MC002", f"there is no file {path}", remedy=_WAYS)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules.setdefault(path.stem, module)  # where dataclasses and pickle look for it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _users_error(f"{path} does not load", error) from error
    finally:
        sys.path.pop(0)
    return module


def _is_of(value: Any, module: str) -> bool:
    return isinstance(value, nn.Module) or getattr(value, "__module__", "") == module


def _instance(value: Any, name: str) -> Any:
    if isinstance(value, type):
        try:
            value = value()
        except TypeError as error:
            raise CompileError(
                "MC002",
                f"the class {name} cannot be made without arguments: {error}",
                remedy="Make an instance in the file, and name that.",
            ) from error
    if not callable(value):
        raise CompileError("MC002", f"{name} is not callable: it is a {type(value).__name__}")
    return value


# ---------------------------------------------------------------------------------- expressions


def from_expression(text: str) -> Target:
    """``nn.RMSNorm(64)(torch.randn(8, 64))``: what is called is the model, the rest its inputs."""
    tree = _parse(text)
    if not isinstance(tree, ast.Call):
        raise CompileError(
            "MC002",
            f"{text!r} is not a call",
            remedy='Write model(inputs), such as -c "F.gelu(torch.randn(8))".',
        )
    called = _evaluate(compile(ast.Expression(tree.func), "<expression>", "eval"), text)
    if any(k.arg is None for k in tree.keywords) or any(
        isinstance(a, ast.Starred) for a in tree.args
    ):
        raise CompileError("MC002", "* and ** are not understood in an expression")
    inputs = tuple(
        _evaluate(compile(ast.Expression(a), "<expression>", "eval"), text) for a in tree.args
    )
    fixed = {
        str(k.arg): _evaluate(compile(ast.Expression(k.value), "<expression>", "eval"), text)
        for k in tree.keywords
    }
    model = called if not fixed else lambda *args: called(*args, **fixed)
    return Target(ast.unparse(tree.func), model, inputs)


def evaluate_inputs(text: str) -> tuple[Any, ...]:
    """``torch.randn(8, 64), 3`` as a tuple."""
    return _as_tuple(_evaluate(compile(ast.Expression(_parse(text)), "<inputs>", "eval"), text))


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise CompileError(
            "MC002",
            f"{text!r} is not a Python expression: {error.msg}",
            where=f"column {error.offset}",
        ) from error


def _evaluate(code: CodeType, text: str) -> Any:
    try:
        return eval(code, {"torch": torch, "nn": nn, "F": F})
    except Exception as error:
        raise CompileError(
            "MC002",
            f"{text!r} fails: {type(error).__name__}: {error}",
            remedy="The names torch, nn and F (torch.nn.functional) can be used.",
        ) from error


# ---------------------------------------------------------------------------------- running


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if callable(value) and not isinstance(value, torch.Tensor):
        value = value()
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _try(target: Target) -> None:
    """Run the model once, so that its own mistakes are told as such, with the user's line."""
    if isinstance(target.model, nn.Module):
        target.model.eval()
    try:
        with torch.no_grad():
            target.model(*target.inputs)
    except Exception as error:
        raise _users_error(f"{target.name} itself fails, without being compiled", error) from error


def _users_error(what: str, error: Exception) -> CompileError:
    remedy = ""
    if isinstance(error, TypeError) and "argument" in str(error):
        remedy = f'Example inputs come from `{INPUT_NAMES[0]}` in the file, or --inputs "...".'
    place = _user_place(error)
    return CompileError(
        "MC002", f"{what}: {type(error).__name__}: {error}", where=place, remedy=remedy
    )


def _user_place(error: Exception) -> str:
    """The last line of the traceback that is neither PyTorch's nor ours."""
    ours = str(Path(__file__).parent.parent)
    library = str(Path(torch.__file__).parent)
    zoo_folder = str(Path(zoo.__file__).parent)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        theirs = not frame.filename.startswith((ours, library, "<"))
        if theirs or frame.filename.startswith(zoo_folder):
            return f"{os.path.relpath(frame.filename)}:{frame.lineno}: {frame.line}"
    return ""
