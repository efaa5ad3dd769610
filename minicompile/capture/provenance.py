"""Where in the user's code is PyTorch being called from?

At every recorded op the Python stack is walked to the nearest frame of the user's.  The frame knows
which instruction it is at, and the instruction knows its line and columns (`co_positions`), so two
calls on one line are told apart.  The walk costs under a microsecond, plus 0.2 per frame of PyTorch.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch
from torch import nn

from minicompile.ir.location import Loc

_TORCH = os.path.dirname(torch.__file__) + os.sep
_CAPTURE = os.path.dirname(__file__) + os.sep
_LIBRARIES = (  # plumbing: the caller's line says more
    _TORCH,
    _CAPTURE,
    os.sep + "einops" + os.sep,
    contextlib.__file__,
)
_MODULES = os.path.join(_TORCH, "nn", "modules") + os.sep

Position = tuple[int, int, int, int]  # line, end line, column, end column


@cache
def is_users(file: str) -> bool:
    """Is this a file of the user's (or of a model library), not of PyTorch or of the capture?"""
    return not any(part in file for part in _LIBRARIES)


class Provenance:
    """Knows, while a model runs, which module and which torch-level call are active.

    `override` replaces the stack walk: an fx graph brings its own locations.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.modules: list[str] = []
        self.paths: dict[int, str] = {}
        self.override: Loc | None = None
        self._positions: dict[CodeType, list[Position]] = {}

    def here(self, call: str = "") -> Loc:
        """The location of the call that is running now."""
        call = call or (self.calls[-1] if self.calls else "")
        if self.override is not None:
            return replace(self.override, call=self.override.call or call)
        frame = self._users_frame()
        if frame is None:
            return Loc("<unknown>", 0, module=self.module, call=call)
        line, end_line, col, end_col = self._position(frame)
        code = frame.f_code
        function = code.co_name
        return Loc(code.co_filename, line, col, end_line, end_col, function, self.module, call)

    @property
    def module(self) -> str:
        return self.modules[-1] if self.modules else ""

    def _users_frame(self) -> FrameType | None:
        """The innermost frame of the user's below `run_model`; else that of the nn.Module inside."""
        frame: FrameType | None = sys._getframe(2)
        fallback = None
        while frame is not None and frame.f_code is not run_model.__code__:
            file = frame.f_code.co_filename
            if is_users(file):
                return frame
            if fallback is None and file.startswith(_MODULES) and frame.f_code.co_name == "forward":
                fallback = frame
            frame = frame.f_back
        return fallback

    def _position(self, frame: FrameType) -> Position:
        code = frame.f_code
        if code not in self._positions:
            self._positions[code] = [
                (line or 0, end_line or 0, col or 0, end_col or 0)
                for line, end_line, col, end_col in code.co_positions()
            ]
        table = self._positions[code]
        at = frame.f_lasti // 2
        return table[at] if 0 <= at < len(table) else (frame.f_lineno, 0, 0, 0)

    @contextlib.contextmanager
    def module_paths(self, on_call: Any) -> Iterator[None]:
        """Follow the calls of modules on this thread; `on_call(module)` hears of each one first."""
        original, owner = nn.Module.__call__, threading.get_ident()

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != owner:
                return original(module, *args, **kwargs)
            on_call(module)
            self.modules.append(self.paths.get(id(module), self.module))
            try:
                return original(module, *args, **kwargs)
            finally:
                self.modules.pop()

        nn.Module.__call__ = call  # type: ignore[method-assign]
        try:
            yield
        finally:
            nn.Module.__call__ = original  # type: ignore[method-assign]


def run_model(model: Any, args: Any, kwargs: Any) -> Any:
    """Call the model. Its own frame marks where the user's frames end."""
    return model(*args, **kwargs)


def users_line(trace: TracebackType | None) -> Loc | None:
    """The deepest line of the user's in a traceback (of the model's own modules, if there is none)."""
    found = fallback = None
    inside = False
    while trace is not None:
        code = trace.tb_frame.f_code
        loc = Loc(code.co_filename, trace.tb_lineno, function=code.co_name)
        if inside and is_users(code.co_filename):
            found = loc
        elif inside and code.co_filename.startswith(_MODULES) and code.co_name == "forward":
            fallback = loc
        inside = inside or code is run_model.__code__
        trace = trace.tb_next
    return found or fallback


def source_line(loc: Loc) -> str:
    """The text of that line, stripped; empty when the file cannot be read."""
    import linecache

    return linecache.getline(loc.file, loc.line).strip()
