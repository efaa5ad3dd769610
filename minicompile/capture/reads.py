"""What a model reads of its surroundings besides tensors: attributes, hooks, globals and closures.

They are baked into the capture by value, so a guard looks at them again on every call.  Seen are

    attributes of modules      each one that was read while the model ran: `self.scale`, `self.stride`
    hooks                      forward hooks of the modules that ran
    globals and closures       numbers, strings and modules named in the model's own functions
    attributes of an object    whose method is the model: those that the method names

Not seen: what helper functions read, and the insides of lists, dictionaries and other objects.
"""

from __future__ import annotations

import enum
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CellType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as nn_module

BY_VALUE = (int, float, complex, str, bytes, torch.Size, slice, range, enum.Enum, tuple)
_WATCHED = (*BY_VALUE, type(None), torch.Tensor, nn.Module, torch.dtype, torch.device)


@dataclass(frozen=True)
class Read:
    """`holder[key]`, or the contents of a closure's cell, was `value`; `path` is for people."""

    path: str
    holder: Mapping[str, Any] | CellType
    key: str
    value: Any


@dataclass(frozen=True)
class Hooks:
    """The hooks of one kind of one module: `table` held `known`."""

    path: str
    table: Mapping[int, Any]
    known: tuple[Any, ...]


def hooks_of(modules: Iterable[tuple[str, nn.Module]]) -> tuple[Hooks, ...]:
    """All forward hooks that run when these modules are called, those for every module included."""
    found = []
    for path, m in modules:
        found += [(path, m._forward_pre_hooks), (path, m._forward_hooks)]
    if found:
        found += [("", nn_module._global_forward_pre_hooks), ("", nn_module._global_forward_hooks)]
    return tuple(Hooks(path, table, tuple(table.values())) for path, table in found)


def reads_of_functions(model: Any, modules: Iterable[nn.Module]) -> tuple[Read, ...]:
    """Globals, closures and attributes that the model's own functions name."""
    found: dict[tuple[int, str], Read] = {}
    for function, owner in _functions(model, modules):
        for read in _names_of(function, owner):
            found.setdefault((id(read.holder), read.key), read)
    return tuple(r for r in found.values() if isinstance(r.value, _WATCHED))


def _functions(
    model: Any, modules: Iterable[nn.Module]
) -> Iterator[tuple[Callable[..., Any], Any]]:
    """The user's functions that certainly run, each with the object that it is a method of."""
    while isinstance(model, functools.partial):
        model = model.func
    owner = getattr(model, "__self__", None)
    if not isinstance(model, nn.Module):
        call = model if inspect.isroutine(model) else type(model).__call__
        yield inspect.unwrap(call), owner or model
    for kind in {type(m) for m in modules}:
        if not kind.__module__.startswith("torch."):
            yield inspect.unwrap(kind.forward), None


def _names_of(function: Callable[..., Any], owner: Any) -> Iterator[Read]:
    function = getattr(function, "__func__", function)
    if not inspect.isfunction(function):
        return
    code, table = function.__code__, function.__globals__
    for name in code.co_names:
        if name in table:
            yield Read(f"the global {name}", table, name, table[name])
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        if name != "__class__":
            yield Read(f"{name} in the closure", cell, "", contents(cell))
    attributes = {} if isinstance(owner, nn.Module) else getattr(owner, "__dict__", {})
    if isinstance(attributes, dict):
        for name in code.co_names:
            if name in attributes:
                yield Read(f"the attribute {name}", attributes, name, attributes[name])


def contents(cell: CellType) -> Any:
    """What a cell holds; Ellipsis if nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return ...


def same_value(a: Any, b: Any) -> bool:
    """Of one type and equal; NaN equals itself, and zeros of different sign differ."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, float) and (not a or math.isnan(a)):
        return repr(a) == repr(b)
    return a is b or (isinstance(a, BY_VALUE) and bool(a == b))
