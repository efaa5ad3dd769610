"""A stand-in for ``torch._dynamo``, so that a capture need not load TorchDynamo.

PyTorch's fake tensors read settings from ``torch._dynamo.config``, and many of its shape functions are
wrapped in ``torch._dynamo.disable``.  Either one imports all of Dynamo: 1.5 to 2 s in a fresh process, more
than a whole compile from the cache, and for nothing, since no Dynamo runs here.  While a capture runs, the
stand-in offers just these two; whatever else is asked of it, by whomever, loads the real Dynamo and steps
aside.  Afterwards everything is as it was.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

NAME = "torch._dynamo"
_LOCK = threading.RLock()
_CONFIG: list[types.ModuleType] = []  # the settings, once loaded


@contextlib.contextmanager
def without_dynamo() -> Iterator[None]:
    """``torch._dynamo`` is the stand-in, unless the real one is loaded already."""
    with _LOCK:
        if NAME in sys.modules:
            yield
            return
        if not _CONFIG:
            _CONFIG.append(_load_config())
        stand_in = StandIn(_CONFIG[0])
        finder = Finder(stand_in)
        stand_in.enter()
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            stand_in.leave()


class StandIn(types.ModuleType):
    """A package with `config` and `disable`; any other attribute is the real package's."""

    __path__: list[str] = []

    def __init__(self, config: types.ModuleType) -> None:
        super().__init__(NAME)
        self.config = config
        self._undisabled: list[Any] = []

    def disable(self, fn: Callable[..., Any], *_: Any, **__: Any) -> Callable[..., Any]:
        """The function itself. PyTorch keeps the answer on the function; `leave` takes it off again."""
        self._undisabled.append(fn)
        return fn

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.real(), name)

    def enter(self) -> None:
        sys.modules.update({NAME: self, f"{NAME}.config": self.config})
        vars(torch)["_dynamo"] = self

    def leave(self) -> None:
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME], sys.modules[f"{NAME}.config"]
        if vars(torch).get("_dynamo") is self:
            del vars(torch)["_dynamo"]
        for fn in self._undisabled:
            vars(fn).pop("__dynamo_disable", None)
        self._undisabled.clear()

    def real(self) -> types.ModuleType:
        self.leave()
        return importlib.import_module(NAME)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers ``import torch._dynamo.x`` while the stand-in is there: with the real module."""

    def __init__(self, stand_in: StandIn) -> None:
        self.stand_in = stand_in

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if not name.startswith(f"{NAME}.") or sys.modules.get(NAME) is not self.stand_in:
            return None
        self.stand_in.real()
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return importlib.import_module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """The module is loaded already."""


def _load_config() -> types.ModuleType:
    """``torch/_dynamo/config.py`` by itself: 1 ms."""
    file = Path(torch.__file__).parent / "_dynamo" / "config.py"
    spec = importlib.util.spec_from_file_location(f"{NAME}.config", file)
    assert spec is not None and spec.loader is not None
    config = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = config  # it looks itself up while it is loaded
    try:
        spec.loader.exec_module(config)
    finally:
        del sys.modules[spec.name]
    return config
