"""Side effects that are no PyTorch op, and would be lost: each is noticed, undone and refused.

A capture runs the model's Python once.  What Python changes on the way would not happen again when the
compiled graph runs, so that a model that counts its calls or caches a tensor in an attribute would
silently go wrong.  Watched are: attributes and buffers of modules, and the random number generators.
Lists and dictionaries among the arguments are compared afterwards, too.  (Not watched: globals, and the
insides of the user's own lists and objects.)
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import TreeSpec, tree_flatten

from minicompile.errors import CompileError
from minicompile.ir.graph import Node

_MISSING = object()
_PLAIN = (bool, int, float, complex, str, bytes, type(None), tuple, torch.dtype, torch.device)
# nn.LSTM and its like notice that their weights were swapped, and note down the new ones.
BOOKKEEPING = {"_flat_weights", "_flat_weight_refs", "_flat_weights_names", "_all_weights"}
_WAYS_OUT = (
    "Return the new value instead, or update a registered buffer in place (self.buffer.copy_(value)). "
    "Without fullgraph=True the call is left to eager PyTorch."
)


class Watch:
    """Attributes, parameters and buffers of modules, as they were."""

    def __init__(self) -> None:
        self._seen: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    def add(self, path: str, module: nn.Module) -> None:
        """Remember the attributes of this module now."""
        for d in (module.__dict__, module._parameters, module._buffers):
            self._seen.append((path, d, dict(d)))

    def check(self, matters: Callable[[torch.Tensor], bool]) -> None:
        """Refuse changed attributes. CompileError MC012 names the first one.

        A tensor that replaces one that does not matter is scratch memory, set anew by every forward (the
        weight of an old-style `weight_norm`): that is fine.
        """
        for path, d, before in self._seen:
            for name in [*before, *(k for k in d if k not in before)]:
                old, new = before.get(name, _MISSING), d.get(name, _MISSING)
                if old is new or name in BOOKKEEPING:
                    continue
                if _same_plain(old, new) or _scratch(old, new, matters):
                    continue
                what = f"{path}.{name}" if path else name
                raise CompileError(
                    "MC012", f"the model sets its attribute {what} while it runs", remedy=_WAYS_OUT
                )

    def restore(self) -> None:
        """Put the old attributes back: fakes must not stay behind."""
        for _, d, before in self._seen:
            for name in [k for k in d if k not in before]:
                del d[name]
            for name, value in before.items():
                if d.get(name, _MISSING) is not value:
                    d[name] = value


def _same_plain(old: Any, new: Any) -> bool:
    return type(old) is type(new) and isinstance(old, _PLAIN) and bool(old == new)


def _scratch(old: Any, new: Any, matters: Callable[[torch.Tensor], bool]) -> bool:
    return isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) and not matters(old)


class ArgumentFake:
    """The fake of an input or parameter, and its memory as it was at the start.

    ``x.data = y`` or ``x.t_()`` give a tensor other memory or another shape: no graph can do that to a
    tensor of the caller.
    """

    def __init__(self, fake: torch.Tensor) -> None:
        self.fake = fake
        self._memory = self._describe()

    def _describe(self) -> tuple[object, ...]:
        t = self.fake
        return t.shape, t.stride(), t.storage_offset(), t.untyped_storage()._cdata

    def check(self, name: str) -> int:
        """The identity of its memory. CompileError MC012 if its memory or shape was replaced."""
        if self._describe() != self._memory:
            raise CompileError(
                "MC012",
                f"the model replaces the memory or the shape of {name} (.data =, resize_, t_, set_)",
                remedy=f"Write into it instead: {name}.copy_(value), or return the new tensor.",
            )
        return int(self.fake.untyped_storage()._cdata)


def unchanged_arguments(leaves: list[Any], spec: TreeSpec, arguments: Any) -> None:
    """Refuse a model that changes the lists and dictionaries that it was given."""
    now, now_spec = tree_flatten(arguments)
    if now_spec != spec or any(a is not b for a, b in zip(leaves, now, strict=True)):
        raise CompileError(
            "MC012",
            "the model changes a list or dictionary among its arguments",
            remedy="Return the new values. Without fullgraph=True the call is left to eager PyTorch.",
        )


def no_overlap(mutated: tuple[str, ...], real: Mapping[str, torch.Tensor]) -> None:
    """Refuse writes into memory that another argument also shows."""
    storages = {name: t.untyped_storage().data_ptr() for name, t in real.items()}
    for name in mutated:
        for other, storage in storages.items():
            if other != name and storage == storages[name] and real[name].numel():
                raise CompileError(
                    "MC012",
                    f"the model writes to {name}, whose memory {other} shares",
                    remedy=f"Pass {other}.clone() instead.",
                )


def addresses_memory(nodes: Iterable[Node], real: Mapping[str, torch.Tensor]) -> bool:
    """Does as_strided count from the start of the storage? Then no argument may start elsewhere."""
    absolute = any(
        n.op.startswith("aten.as_strided") and len(n.args) > 3 and n.args[3] is not None
        for n in nodes
    )
    for name, t in real.items():
        if absolute and t.storage_offset():
            raise CompileError(
                "MC012",
                f"as_strided counts from the start of the storage, but {name} starts elsewhere in it",
                remedy=f"Pass {name}.clone(), or use slicing in place of as_strided.",
            )
    return absolute


@contextlib.contextmanager
def steady_generators() -> Iterator[None]:
    """Refuse a model that seeds, or draws from, a generator outside the graph; restore its state."""
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    moved: list[str] = []
    try:
        with _watched_seeds() as seeded:
            yield
    finally:
        if seeded or not torch.equal(torch.get_rng_state(), torch_state):
            torch.set_rng_state(torch_state)
            moved.append("seeds torch's random generator")
        if random.getstate() != python_state:
            random.setstate(python_state)
            moved.append("draws from Python's `random`, whose values would be frozen")
    if moved:
        raise CompileError(
            "MC012",
            f"the model {moved[0]} while it runs",
            remedy="Seed outside the model and draw with torch (torch.rand) inside it.",
        )


_SEEDING = ("manual_seed", "seed", "set_rng_state")


@contextlib.contextmanager
def _watched_seeds() -> Iterator[list[str]]:
    """Collects calls that set the state of torch's generator, even if it is put back afterwards."""
    calls: list[str] = []
    owner = threading.get_ident()

    def watched(f: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == owner:
                calls.append(f.__name__)
            return f(*args, **kwargs)

        return call

    real = [
        (place, name, getattr(place, name)) for place in (torch, torch.random) for name in _SEEDING
    ]
    for place, name, f in real:
        setattr(place, name, watched(f))
    try:
        yield calls
    finally:
        for place, name, f in real:
            setattr(place, name, f)
