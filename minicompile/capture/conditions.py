"""The conditions of a guard, from a capture: one method for each thing to look at."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from types import CellType
from typing import Any

import torch
from torch import nn

from minicompile.capture.captured import Captured, Leaf, ModuleFact, Slot
from minicompile.capture.names import Namer, identifier
from minicompile.capture.reads import BY_VALUE, Read, same_value
from minicompile.ir.graph import Graph, Value
from minicompile.ir.types import TensorType


@dataclass(frozen=True)
class Condition:
    """One thing to hold: `test` is Python; `words` say what is wrong, {now} being the value of `now`."""

    test: str
    words: str
    now: str = "None"


class Builder:
    """Collects conditions, and the objects that they compare with."""

    def __init__(self, captured: Captured) -> None:
        self.captured = captured
        self.conditions: list[Condition] = []
        self.scope: dict[str, Any] = {}
        self._namer = Namer()
        self._named: dict[int, str] = {}
        for leaf in captured.leaves:
            self._namer.used.add(leaf.name)
        self._namer.used |= {"guard", "leaves"}

    def build(self) -> None:
        """All conditions, the likeliest to fail first."""
        types = {v.name: v.type for v in self.captured.graph.inputs}
        for leaf in self.captured.leaves:
            if leaf.input is not None:
                self.tensor(leaf.name, types[leaf.input])
            else:
                self.constant(leaf)
        self.gradients()
        self.structure()
        for module in self.captured.modules:
            self.training(module)
        for read in self.captured.reads:
            self.read(read)
        self.hooks()
        for first, second in self.captured.tied:
            self.tied(first, second)
        self.memory()
        self.modes()

    def text(self) -> str:
        """The source of the guard."""
        names = "".join(f"{leaf.name}, " for leaf in self.captured.leaves)
        tests = "".join(
            f"        {'and ' if i else ''}{c.test}\n" for i, c in enumerate(self.conditions)
        )
        unpack = f"    {names.rstrip()} = leaves\n" if names else ""
        if not self.captured.reads:
            return f"def guard(leaves):\n{unpack}    return (\n{tests}    )\n"
        tests = textwrap.indent(tests, "    ")
        return (
            f"def guard(leaves):\n{unpack}    try:\n        return (\n{tests}        )\n"
            "    except (KeyError, ValueError):  # what was read is gone\n        return False\n"
        )

    def add(self, test: str, words: str, now: str = "None") -> None:
        """One more condition."""
        self.conditions.append(Condition(test, words, now))

    def use(self, name: str, value: Any) -> str:
        """The name of this object in the guard's scope."""
        if id(value) not in self._named:
            self._named[id(value)] = name = self._namer.unique(name)
            self.scope[name] = value
        return self._named[id(value)]

    # ------------------------------------------------------------------------- leaves

    def tensor(self, x: str, type: TensorType) -> None:
        """Kind, dtype, shape, layout and device of one input."""
        self.add(
            f"type({x}) in {self.use('plain', _PLAIN)}", f"{x}: {{now}}, was a tensor", f"type({x})"
        )
        dtype = type.dtype.torch
        name = self.use(str(dtype).removeprefix("torch."), dtype)
        self.add(f"{x}.dtype is {name}", f"{x}: dtype {{now}}, was {dtype}", f"{x}.dtype")
        shape = type.dims
        self.add(f"{x}.shape == {shape}", f"{x}: shape {{now}}, was {shape}", f"tuple({x}.shape)")
        layout = self.use("strided_layout", torch.strided)
        self.add(
            f"{x}.layout is {layout}", f"{x}: layout {{now}}, was torch.strided", f"{x}.layout"
        )
        strides = type.dense_strides
        test = f"{x}.is_contiguous()" if type.strides is None else f"{x}.stride() == {strides}"
        self.add(test, f"{x}: strides {{now}}, were {strides}", f"{x}.stride()")
        device = self.captured.device
        self.add(f"{x}.is_{device}", f"{x}: device {{now}}, was {device}", f"{x}.device")
        if type.dtype.kind in "fc":
            self.add(f"not {x}.is_neg()", f"{x}: it is a lazily negated view")
        if type.dtype.kind == "c":
            self.add(f"not {x}.is_conj()", f"{x}: it is a lazily conjugated view")
        if self.captured.zero_offset:
            self.add(f"not {x}.storage_offset()", f"{x}: it starts inside its storage")

    def constant(self, leaf: Leaf) -> None:
        """An argument that is no tensor: the same value of the same type, or the same object."""
        x, value = leaf.name, leaf.value
        if value is None or isinstance(value, bool):
            self.add(f"{x} is {value}", f"{x}: {{now}}, was {value}", f"repr({x})")
        elif isinstance(value, BY_VALUE):
            name = self.use(type(value).__name__, type(value))
            test = f"type({x}) is {name} and {self.equal(x, value)}"
            self.add(test, f"{x}: {{now}}, was {_braces(value)}", f"repr({x})")
        else:
            name = self.use(f"the_{x}", value)
            self.add(f"{x} is {name}", f"{x}: another {type(value).__name__}")

    def equal(self, x: str, value: Any) -> str:
        """A test of equality; NaN equals itself, and zeros of different sign differ."""
        if isinstance(value, float) and (math.isnan(value) or value == 0 or math.isinf(value)):
            return f"repr({x}) == {repr(value)!r}"
        if isinstance(value, int | float | str | bytes):
            return f"{x} == {value!r}"
        return f"{x} == {self.use(f'the_{x}', value)}"

    # ------------------------------------------------------------------------- the model

    def gradients(self) -> None:
        """The compiled code records no gradient: none may be needed."""
        inputs = [f"{v.name}.requires_grad" for v in self.captured.graph.inputs]
        if self.captured.slots:
            inputs.append(
                f"{self.use('a_parameter_requires_grad', self.parameter_requires_grad)}()"
            )
        enabled = self.use("is_grad_enabled", torch.is_grad_enabled)
        if inputs:
            wanted = " or ".join(inputs)
            self.add(f"not ({enabled}() and ({wanted}))", "gradients are needed")

    def parameter_requires_grad(self) -> bool:
        """Does any parameter of the graph require a gradient now?"""
        tensors = (slot.get() for slot in self.captured.slots)
        return any(t is not None and t.requires_grad for t in tensors)

    def structure(self) -> None:
        """The same modules still stand in each module: one comparison of identities per parent."""
        parents = {id(m.parent): m.parent for m in self.captured.modules if m.parent is not None}
        paths = {id(m.module): m.path for m in self.captured.modules}
        for key, parent in parents.items():
            path = paths.get(key, "")
            table = self.use(f"children_of_{path}" if path else "children", parent._modules)
            known = self.use(f"{table}_known", list(parent._modules.values()))
            words = f"a module inside {path or 'the model'} was replaced"
            self.add(f"[*{table}.values()] == {known}", words)

    def training(self, m: ModuleFact) -> None:
        """A module is still in the mode that the model looked at."""
        if m.training is not None:
            name = self.use(f"module_{m.path}" if m.path else "model", m.module)
            words = f"{m.path or 'the model'}: training is {{now}}, was {m.training}"
            self.add(f"{name}.training is {m.training}", words, f"{name}.training")

    def read(self, r: Read) -> None:
        """An attribute, global or closure still has its value (or, if it is an object, is the same)."""
        if isinstance(r.holder, CellType):
            now = f"{self.use(r.path, r.holder)}.cell_contents"
            words = now
        else:
            owner = self.use(f"around_{r.path.removesuffix(r.key)}", r.holder)
            now, words = f"{owner}[{r.key!r}]", f"{owner}.get({r.key!r})"
        if r.value is None or isinstance(r.value, bool):
            test = f"{now} is {r.value}"
        else:
            known = self.use(f"known_{r.path}", r.value)
            test = f"{now} is {known}"
            if isinstance(r.value, BY_VALUE):
                test = f"({test} or {self.use('same_value', same_value)}({now}, {known}))"
        self.add(test, f"{r.path}: {{now}}, was {_braces(r.value)}", f"repr({words})")

    def hooks(self) -> None:
        """No hook was added or removed. (`any` looks at all tables at once.)"""
        empty = tuple([h.table for h in self.captured.hooks if not h.known])
        if empty:
            self.add(f"not any({self.use('hooks', empty)})", "a hook was added to a module")
        for h in self.captured.hooks:
            if h.known:
                table = self.use(f"hooks_of_{h.path}", h.table)
                known = self.use(f"known_{table}", h.known)
                self.add(f"(*{table}.values(),) == {known}", f"hooks of {h.path} changed")

    def tied(self, first: Slot, second: Slot) -> None:
        """Two parameters that were one tensor still are."""
        same = self.use("same", _same)
        a, b = (self.use(f"slot_{identifier(s.path)}", s) for s in (first, second))
        self.add(f"{same}({a}, {b})", f"{first.path} and {second.path} are no longer one tensor")

    # ------------------------------------------------------------------------- surroundings

    def memory(self) -> None:
        """What is written to must not be seen through another argument."""
        inputs = [v.name for v in self.captured.graph.inputs]
        written = [s for s in self.captured.slots if s.name in self.captured.mutated]
        targets = [n for n in inputs if n in self.captured.mutated]
        others = [n for n in inputs if n not in targets]
        if targets or (written and inputs):
            slots = written if not targets else self.captured.slots
            test = self.use("apart", lambda wrote, read: _apart(wrote, read, slots))
            wrote, read = (f"({''.join(f'{n}, ' for n in names)})" for names in (targets, others))
            self.add(f"{test}({wrote}, {read})", "an argument that is written to shares memory")

    def modes(self) -> None:
        """Modes of PyTorch that change what an op does."""
        if self.captured.autocast:
            on = self.use("is_autocast_enabled", torch.is_autocast_enabled)
            device = self.captured.device
            self.add(f"{on}({device!r})", "autocast is off, was on")
            get = self.use("get_autocast_dtype", torch.get_autocast_dtype)
            target = self.use("autocast_dtype", torch.get_autocast_dtype(device))
            self.add(f"{get}({device!r}) is {target}", "autocast to another dtype than before")
        else:
            on = self.use("is_any_autocast_enabled", torch._C._is_any_autocast_enabled)
            self.add(f"not {on}()", "autocast is on, was off")
        if _default_dtype_matters(self.captured.graph):
            get = self.use("get_default_dtype", torch.get_default_dtype)
            dtype = self.captured.default_dtype
            name = self.use(str(dtype).removeprefix("torch."), dtype)
            self.add(f"{get}() is {name}", f"default dtype {{now}}, was {dtype}", f"{get}()")


_PLAIN = (torch.Tensor, nn.Parameter)


def _braces(value: Any) -> str:
    """The value's text, safe in a format string."""
    return repr(value).replace("{", "{{").replace("}", "}}")


def _same(a: Slot, b: Slot) -> bool:
    return a.get() is b.get()


def _apart(
    wrote: Sequence[torch.Tensor], read: Sequence[torch.Tensor], slots: Sequence[Slot]
) -> bool:
    """Does no written tensor share its storage with another? (More than overlap, and far cheaper.)"""
    tensors = [*wrote, *read, *(s.read() for s in slots)]
    storages = [t.untyped_storage().data_ptr() for t in tensors if t.numel()]
    return len(set(storages)) == len(storages)


def _default_dtype_matters(graph: Graph) -> bool:
    """Is there a float made from none: ``torch.ones(3)``, or an integer tensor divided?"""

    def is_float(v: Value) -> bool:
        return v.type.dtype.kind in "fc"

    return any(
        any(map(is_float, n.outs)) and not any(map(is_float, n.operands)) for n in graph.nodes
    )
