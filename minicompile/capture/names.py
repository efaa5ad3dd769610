"""Names for values: from the user's own names, made valid, unique, and free of the IR's words."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.utils._pytree import KeyPath

from minicompile.ir.words import RESERVED
from minicompile.ops.registry import PRIMITIVES

_KERNEL = re.compile(r"k\d+")  # fuse names kernels so


class Namer:
    """Gives out names, each once."""

    def __init__(self) -> None:
        self.used = set(RESERVED)
        self._values = 0

    def unique(self, text: str) -> str:
        """`text` as an identifier; ``_2``, ``_3`` ... is added when it is taken or an op's name."""
        name = base = identifier(text)
        n = 2
        while name in self.used or name in PRIMITIVES or _KERNEL.fullmatch(name):
            name, n = f"{base}_{n}", n + 1
        self.used.add(name)
        return name

    def value(self) -> str:
        """The next of t0, t1, t2, ..."""
        while True:
            name = f"t{self._values}"
            self._values += 1
            if name not in self.used:
                self.used.add(name)
                return name


def identifier(text: str) -> str:
    """``layers.0.weight`` -> ``layers_0_weight``; ``0.weight`` -> ``m0_weight``; ``class`` -> ``class_``."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "x"
    if name[0].isdigit():
        name = f"m{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def graph_name(model: Any) -> str:
    """The model's class or function name in snake_case: ``GPT2Block`` -> ``gpt2_block``, lambda -> fn."""
    model = inspect.unwrap(model) if inspect.isfunction(model) else model
    name = getattr(model, "__name__", None) or type(model).__name__
    owner = getattr(model, "__self__", None)
    if isinstance(model, nn.Module) or (isinstance(owner, nn.Module) and name == "forward"):
        name = type(model if isinstance(model, nn.Module) else owner).__name__
    if name == "<lambda>":
        return "fn"
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = identifier(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower())
    return f"{name}_model" if name in RESERVED or name in PRIMITIVES else name


def leaf_names(model: Any, args: tuple[Any, ...], paths: Iterable[KeyPath]) -> list[str]:
    """A name for each leaf of (args, kwargs): ``x``, ``x_0`` and ``x_key`` inside a pytree, ``args_0``.

    The names are suggestions: not yet unique.
    """
    positional = positional_names(model, len(args))
    names = []
    for path in paths:
        where, first, *rest = path  # (args or kwargs, which, inside)
        keyword = _key_text(where) == "1"
        head = _key_text(first) if keyword else positional[int(_key_text(first))]
        names.append("_".join([head, *(_key_text(k) for k in rest)]))
    return names


def positional_names(model: Any, n: int) -> list[str]:
    """The parameter names that n positional arguments of a call fill."""
    given: list[str] | None = getattr(model, "argument_names", None)  # an fx graph's own
    if given is not None:
        return given[:n]
    call: Callable[..., Any] = model.forward if isinstance(model, nn.Module) else model
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        parameters = []
    names: list[str] = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}_{i}" for i in range(n - len(names))]
        elif p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD:
            names.append(p.name)
    return (names + [f"arg{i}" for i in range(len(names), n)])[:n]


def _key_text(key: Any) -> str:
    for field in ("idx", "key", "name"):
        if hasattr(key, field):
            return str(getattr(key, field))
    return str(key)
