"""Reading the model's parameters at call time, as they are now.

Nothing of a parameter is baked into compiled code but its shape, dtype and strides.  Each call reads the
tensors through the modules' own dictionaries, so an assignment ``model.w = Parameter(...)``, an
optimizer step, `load_state_dict` or ``p.data = t`` are all followed.  Only when a pointer moved (the
runtime needs the pointers anyway) are shape, dtype and strides looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from minicompile.capture.captured import Captured, Slot
from minicompile.errors import CompileError
from minicompile.ir.graph import Value


class ParametersChanged(CompileError):
    """A parameter no longer has the shape, dtype, strides or device that was compiled for."""

    def __init__(self, message: str) -> None:
        super().__init__("MC010", message, remedy="Compile again: the model itself was changed.")


class ParameterReader:
    """The current tensors of a capture's parameters, as a sequence that is read anew each time.

    `text` is the generated Python that reads them.
    """

    def __init__(self, captured: Captured) -> None:
        self._slots, self._values = captured.slots, captured.graph.params
        self._captured = captured
        self.text = reader_text(self._slots)
        scope: dict[str, Any] = dict(_sources(self._slots))
        exec(compile(self.text, f"<parameters of {captured.graph.name}>", "exec"), scope)
        self._tensors: Callable[[], tuple[torch.Tensor, ...]] = scope["tensors"]
        self._pointers: Callable[[], tuple[int, ...]] = scope["pointers"]
        self._checked: tuple[int, ...] = (-1,)  # no pointer is negative

    def tensors(self) -> list[torch.Tensor]:
        """The current tensor of each graph parameter, in order."""
        return list(self._tensors())

    def __getitem__(self, n: int) -> torch.Tensor:
        return self._slots[n].read()

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self._tensors())

    def pointers(self) -> tuple[int, ...]:
        """Their data pointers; the same tuple object as long as none of them changed.

        ParametersChanged if a parameter no longer is what was compiled for.
        """
        try:
            now = self._pointers()
        except (AttributeError, KeyError):  # set to None, or deleted: `problem` says which
            now = ()
        if now != self._checked:
            problem = self.problem()
            if problem:
                raise ParametersChanged(problem)
            self._checked = now
        return self._checked

    def problem(self) -> str:
        """What no longer fits, in words: ``fc1.weight: shape (4, 8), was (2, 8)``; "" if all is well."""
        for slot, value in zip(self._slots, self._values):
            tensor = slot.get()
            if tensor is None:
                return f"{slot.path}: it is gone"
            difference = _difference(tensor, value, self._captured)
            if difference:
                return f"{slot.path}: {difference}"
        return ""


def _difference(t: torch.Tensor, value: Value, captured: Captured) -> str:
    if type(t) not in (torch.Tensor, nn.Parameter):
        return f"it is a {type(t).__name__}, was a plain tensor"
    if tuple(t.shape) != value.type.dims:
        return f"shape {tuple(t.shape)}, was {value.type.dims}"
    if t.dtype != value.type.dtype.torch:
        return f"dtype {t.dtype}, was {value.type.dtype.torch}"
    if t.device.type != captured.device:
        return f"device {t.device}, was {captured.device}"
    same_layout = (
        t.is_contiguous() if value.type.strides is None else t.stride() == value.type.strides
    )
    if not same_layout:
        return f"strides {tuple(t.stride())}, were {value.type.dense_strides}"
    if captured.zero_offset and t.storage_offset():
        return "it does not start where its storage starts"
    return ""


def reader_text(slots: tuple[Slot, ...]) -> str:
    """The source of ``tensors()`` and ``pointers()``, unrolled: about 0.1 us per parameter."""
    names = list(_sources(slots))
    owners = {id(v): n for n, v in _sources(slots).items()}
    reads = [
        s.name if s.module is None else f"{owners[id(getattr(s.module, s.kind))]}[{s.attribute!r}]"
        for s in slots
    ]
    assert len(names) == len(owners)
    tensors = "".join(f"        {r},  # {s.path}\n" for r, s in zip(reads, slots))
    pointers = "".join(f"        {r}.data_ptr(),\n" for r in reads)
    return (
        f"def tensors():\n    return (\n{tensors}    )\n\n\n"
        f"def pointers():\n    return (\n{pointers}    )\n"
    )


def _sources(slots: tuple[Slot, ...]) -> dict[str, Any]:
    """The dictionaries (and constants) that the generated code reads from, by name."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for s in slots:
        source = s.constant if s.module is None else getattr(s.module, s.kind)
        if id(source) not in seen:
            seen.add(id(source))
            found[s.name if s.module is None else f"d{len(found)}"] = source
    return found
