"""Parameters and buffers: named inputs of the graph, swapped for fakes while the model runs.

A module's own tensors must not be touched by a capture (``running_mean.add_`` would really run), so
each module is given fake ones for the time being; nothing is copied.  A module is *adopted* with all
its children: the model itself at the start, any other when it is first called (a function that closes
over a module).  Real tensors met otherwise are constants the code closed over.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn.utils.stateless import _reparametrize_module

from minicompile.capture.captured import ModuleFact, Slot
from minicompile.capture.fakes import fake_like
from minicompile.capture.names import Namer, graph_name
from minicompile.capture.reads import Hooks, Read, hooks_of
from minicompile.capture.side_effects import BOOKKEEPING, ArgumentFake, Watch
from minicompile.errors import CompileError


class ModuleState:
    """The tensors of all adopted modules: real -> fake, and where each lives."""

    def __init__(self, fake: FakeTensorMode, namer: Namer, paths: dict[int, str]) -> None:
        self.fake, self.namer, self.paths = fake, namer, paths
        self.slots: list[Slot] = []
        self.tied: list[tuple[Slot, Slot]] = []
        self.fakes: dict[int, torch.Tensor] = {}  # id(real) -> fake
        self.slot_of: dict[int, Slot] = {}  # id(fake) -> slot
        self.arguments: dict[str, ArgumentFake] = {}  # by the name of the slot
        self.training: dict[int, bool] = {}  # id(module) -> the flag that was read
        self.attributes: dict[tuple[int, str], tuple[nn.Module, Any]] = {}  # others that were read
        self.modules: list[tuple[str, nn.Module, nn.Module | None, str]] = []
        self.called: set[int] = set()
        self._kept: list[torch.Tensor] = []  # an id stays unique while its object lives
        self._stack = contextlib.ExitStack()
        self.watch = Watch()

    def adopt(self, root: nn.Module, prefix: str) -> None:
        """Give `root` and its children fake tensors until `close`; their paths start with `prefix`."""
        if id(root) in self.paths:
            return
        fakes: dict[str, torch.Tensor] = {}
        for path, module in root.named_modules():
            full = ".".join(p for p in (prefix, path) if p)
            self._refuse_scripts(full, module)
            self._meet(full, module, root, path)
            for kind in ("_parameters", "_buffers"):
                for attribute, tensor in getattr(module, kind).items():
                    if tensor is not None and not isinstance(tensor, FakeTensor):
                        slot_path = f"{full}.{attribute}" if full else attribute
                        key = f"{path}.{attribute}" if path else attribute
                        slot = Slot("", slot_path, module, kind, attribute)
                        fakes[key] = self._fake_of(tensor, slot)
        self._stack.enter_context(_reparametrize_module(root, fakes, tie_weights=False))
        for path, module in root.named_modules():
            self.watch.add(".".join(p for p in (prefix, path) if p), module)

    def _refuse_scripts(self, path: str, module: nn.Module) -> None:
        if isinstance(module, torch.jit.ScriptModule):
            raise CompileError(
                "MC010",
                f"{path or 'the model'} is a TorchScript module, whose code cannot be followed",
                remedy="Compile the original module instead of the scripted one.",
            )

    def _meet(self, full: str, module: nn.Module, root: nn.Module, path: str) -> None:
        if id(module) not in self.paths:
            self.paths[id(module)] = full
            parent_path, _, attribute = path.rpartition(".")
            parent = root.get_submodule(parent_path) if path else None
            self.modules.append((full, module, parent, attribute))

    def _fake_of(self, tensor: torch.Tensor, slot: Slot) -> torch.Tensor:
        if isinstance(tensor, nn.UninitializedParameter | nn.UninitializedBuffer):
            raise CompileError(
                "MC010",
                f"{slot.path} has no shape yet (a lazy module)",
                remedy="Run the model once on example inputs first.",
            )
        if id(tensor) in self.fakes:
            fake = self.fakes[id(tensor)]
            self.tied.append((self.slot_of[id(fake)], slot))
            return fake
        return self.remember(tensor, slot)

    def remember(self, tensor: torch.Tensor, slot: Slot) -> torch.Tensor:
        """A fake for this real tensor, known to live in `slot`, which gets its name here."""
        named = replace(slot, name=self.namer.unique(slot.path))
        fake = fake_like(self.fake, tensor)
        self.fakes[id(tensor)], self.slot_of[id(fake)] = fake, named
        self.arguments[named.name] = ArgumentFake(fake)
        self._kept.append(tensor)
        self.slots.append(named)
        return fake

    def constant(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake of a real tensor met in the trace: a parameter's, or that of a new constant."""
        if id(tensor) not in self.fakes:
            return self.remember(
                tensor, self._attribute_slot(tensor) or self._constant_slot(tensor)
            )
        return self.fakes[id(tensor)]

    def _attribute_slot(self, tensor: torch.Tensor) -> Slot | None:
        """The plain attribute of a module that was read as this tensor, if there is one."""
        for (_, name), (module, value) in self.attributes.items():
            if value is tensor:
                return Slot("", self._path(module, name), module, "__dict__", name)
        return None

    def _constant_slot(self, tensor: torch.Tensor) -> Slot:
        n = sum(slot.module is None for slot in self.slots)
        return Slot("", f"const{n}", constant=tensor)

    def on_call(self, module: nn.Module) -> None:
        """A module is about to run: adopt it if it is new."""
        self.adopt(module, graph_name(module))
        self.called.add(id(module))

    def matters(self, t: torch.Tensor) -> bool:
        """Was this tensor read as a constant, or is it a parameter or buffer?"""
        return id(t) in self.fakes or id(t) in self.slot_of

    def close(self) -> None:
        """Put everything back as it was."""
        self.watch.restore()
        self._stack.close()

    @contextlib.contextmanager
    def attribute_reads(self) -> Iterator[None]:
        """Note which attributes of modules this thread looks at."""
        owner = threading.get_ident()

        def get(module: nn.Module, name: str) -> Any:
            value = object.__getattribute__(module, name)
            if threading.get_ident() == owner:
                if name == "training":
                    self.training[id(module)] = bool(value)
                elif name not in _EVERY_MODULES and name in object.__getattribute__(
                    module, "__dict__"
                ):
                    self.attributes.setdefault((id(module), name), (module, value))
            return value

        nn.Module.__getattribute__ = get  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            del nn.Module.__getattribute__

    def facts(self) -> tuple[ModuleFact, ...]:
        """The modules that were called or asked for `training`, and the modules they are in."""
        used = self.called | set(self.training)
        for _, module, parent, _ in reversed(self.modules):  # children stand behind their parents
            if id(module) in used and parent is not None:
                used.add(id(parent))
        return tuple(
            ModuleFact(path, m, parent, attribute, self.training.get(id(m)))
            for path, m, parent, attribute in self.modules
            if id(m) in used
        )

    def reads(self) -> tuple[Read, ...]:
        """Attributes that were read, and parameters that are None, of modules; after `close`.

        What the model itself set is left out (see `Watch`), and tensors that are read at each call.
        """
        slots = {(id(s.module), s.attribute) for s in self.slots}
        found = [
            Read(self._path(m, name), m.__dict__, name, value)
            for (key, name), (m, value) in self.attributes.items()
            if m.__dict__.get(name, ...) is value
            and name not in BOOKKEEPING
            and (key, name) not in slots
        ]
        for m in self.ran():
            for table in (m._parameters, m._buffers):
                found += [Read(self._path(m, n), table, n, None) for n in table if table[n] is None]
        return tuple(found)

    def ran(self) -> list[nn.Module]:
        """The modules that were called."""
        return [m for _, m, _, _ in self.modules if id(m) in self.called]

    def hooks(self) -> tuple[Hooks, ...]:
        """The hooks that ran with them."""
        return hooks_of((self.paths[id(m)], m) for m in self.ran())

    def _path(self, module: nn.Module, name: str) -> str:
        return ".".join(p for p in (self.paths.get(id(module), ""), name) if p)


_EVERY_MODULES = frozenset(vars(nn.Module()))  # what every module has: `_parameters`, hooks, ...


def roots_of(model: Any) -> Iterator[tuple[nn.Module, str]]:
    """The modules that a callable visibly works on, each with the prefix of its parameters' names.

    A module itself, or that of its method, has none; a module in a closure, in a global or in an attribute
    of a callable object is called as it is there.
    """
    while isinstance(model, functools.partial):
        model = model.func
    owner = getattr(model, "__self__", None)
    for root in (model, owner):
        if isinstance(root, nn.Module):
            yield root, ""
            return
    seen: dict[str, Any] = dict(getattr(owner or model, "__dict__", {}))
    function = inspect.unwrap(model) if callable(model) else model
    if inspect.isfunction(function):
        names = inspect.getclosurevars(function)
        seen |= {**names.globals, **names.nonlocals}
    for name, value in seen.items():
        if isinstance(value, nn.Module):
            yield value, name
