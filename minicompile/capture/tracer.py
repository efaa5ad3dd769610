"""Capture: run the model once on fake tensors and write down what PyTorch was asked for.

`capture(model, args, kwargs)` gives a `Captured`: the graph at the ATen level (stage ``capture``) and
how a later call maps onto it.  The model's Python runs once, here; what it does besides calling PyTorch
is refused (`side_effects`), what it decides by the values of tensors too (`refuse`).

In PyTorch this is `make_fx`, with proxies.  torch.compile reads bytecode first (TorchDynamo) and so
sees `if` statements, which an ATen recorder cannot; the price is a bytecode interpreter.
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_flatten, tree_flatten_with_path, tree_unflatten

from minicompile.capture.captured import Captured, Leaf, Result, Slot, flatten
from minicompile.capture.constants import argument_type, eager_strides
from minicompile.capture.fakes import fake_like, fake_tensors
from minicompile.capture.module_state import ModuleState, roots_of
from minicompile.capture.names import Namer, graph_name, leaf_names
from minicompile.capture.provenance import Provenance, run_model
from minicompile.capture.reads import reads_of_functions
from minicompile.capture.recorder import Recorder, TorchCalls
from minicompile.capture.refuse import check_input, explained
from minicompile.capture.shortcuts import no_shortcuts
from minicompile.capture.side_effects import (
    ArgumentFake,
    addresses_memory,
    no_overlap,
    steady_generators,
    unchanged_arguments,
)
from minicompile.errors import CompileError
from minicompile.ir.graph import Graph, Output, Value
from minicompile.ir.torch_call import hidden_writes

_CAPTURING = threading.local()  # has `depth` in the threads that capture
_LOCK = threading.RLock()  # modules are patched and their parameters swapped: one capture at a time

# Python values that may stand among the arguments; anything else could hide tensors or change.
_VALUES = (
    *(bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout),
    *(torch.memory_format, torch.Size, slice, range, type(Ellipsis), type, nn.Module),
    enum.Enum,
)


def capture(
    model: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    device: str = "cpu",
    provenance: Provenance | None = None,
) -> Captured:
    """Record one call ``model(*args, **kwargs)``.

    `model` is any callable; tensors anywhere in args and kwargs (pytrees) become inputs, all else is
    baked in by value.  `device` is the kind of device ("cpu", "cuda") that all tensors must be on.
    CompileError: MC011 if values of tensors steer the Python code, MC012 for side effects, MC013 for
    tensors of an unsupported kind.  An error of the model itself is raised as eager raises it.
    """
    if not callable(model):
        raise CompileError("MC002", f"a {type(model).__name__} is not callable")
    with _LOCK, _noted(), fake_tensors() as fake, steady_generators():
        session = _Session(model, tuple(args), dict(kwargs or {}), device, provenance, fake)
        try:
            return session.run()
        except Exception as error:
            raise explained(error, session.provenance.override) from None


def is_capturing() -> bool:
    """Is this thread in the middle of a capture? Compiled functions met there run as they were written."""
    return getattr(_CAPTURING, "depth", 0) > 0


@contextlib.contextmanager
def _noted() -> Iterator[None]:
    _CAPTURING.depth = getattr(_CAPTURING, "depth", 0) + 1
    try:
        yield
    finally:
        _CAPTURING.depth -= 1


@dataclass(frozen=True)
class _Input:
    """A graph input while it is captured: the number of its leaf, the real tensor and its fake."""

    leaf: int
    value: Value
    real: torch.Tensor
    fake: torch.Tensor


class _Session:
    """One capture, step by step."""

    def __init__(
        self,
        model: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        device: str,
        provenance: Provenance | None,
        fake: FakeTensorMode,
    ) -> None:
        self.model, self.device = model, device
        self.args, self.kwargs = args, kwargs
        self.fake = fake
        self.namer = Namer()
        self.provenance = provenance or Provenance()
        self.state = ModuleState(self.fake, self.namer, self.provenance.paths)
        self.recorder = Recorder(self.namer, self.state, self.provenance, device)
        self.leaves: list[Leaf] = []
        self.inputs: list[_Input] = []
        self.arguments: dict[str, ArgumentFake] = {}

    def run(self) -> Captured:
        """Fake the arguments, run the model, put everything back, collect."""
        fakes, spec = self._fake_leaves()
        fake_args, fake_kwargs = tree_unflatten(fakes, spec)
        try:
            with self._surroundings():
                for root, prefix in roots_of(self.model):
                    self.state.adopt(root, prefix)
                out = run_model(self.model, fake_args, fake_kwargs)
            unchanged_arguments(fakes, spec, (fake_args, fake_kwargs))
            self.state.watch.check(self.state.matters)
        finally:
            self.state.close()
        return self._captured(out)

    @contextlib.contextmanager
    def _surroundings(self) -> Iterator[None]:
        """Everything that is different while the model runs."""
        with contextlib.ExitStack() as stack:
            for context in (
                torch.inference_mode(False),
                torch.no_grad(),
                no_shortcuts(),
                self.state.attribute_reads(),
                self.provenance.module_paths(self.state.on_call),
                self.fake,
                self.recorder,
                TorchCalls(self.recorder),
            ):
                stack.enter_context(context)
            yield

    # ------------------------------------------------------------------------- arguments

    def _fake_leaves(self) -> tuple[list[Any], Any]:
        """The leaves of the call, tensors replaced by fakes and named."""
        paths, spec = tree_flatten_with_path((self.args, self.kwargs))
        names = leaf_names(self.model, self.args, [path for path, _ in paths])
        return [self._leaf(i, n, x) for i, (n, (_, x)) in enumerate(zip(names, paths))], spec

    def _leaf(self, index: int, name: str, x: Any) -> Any:
        name = self.namer.unique(name)
        if not isinstance(x, torch.Tensor):
            if not isinstance(x, _VALUES) and not callable(x):
                raise CompileError(
                    "MC002",
                    f"argument {name} is a {type(x).__name__}, whose contents cannot be watched",
                    remedy="Pass tensors, numbers, strings, and lists, tuples or dicts of them.",
                )
            self.leaves.append(Leaf(name, None, x))
            return x
        check_input(name, x)
        fake = fake_like(self.fake, x)  # one each, even where two share memory: see `mutated`
        value = Value(name, argument_type(x, self.device))
        self.leaves.append(Leaf(name, name))
        self.inputs.append(_Input(index, value, x, fake))
        self.arguments[name] = ArgumentFake(fake)
        self.recorder.bind(fake, value)
        return fake

    # ------------------------------------------------------------------------- the result

    def _captured(self, out: Any) -> Captured:
        outputs, results, out_spec = self._outputs(out)
        slots = self._used_slots(outputs)
        real = {i.value.name: i.real for i in self.inputs} | {s.name: s.read() for s in slots}
        params = tuple(Value(s.name, argument_type(s.read(), self.device)) for s in slots)
        inputs = tuple(i.value for i in self.inputs)
        nodes = tuple(self.recorder.nodes)
        mutated = self._mutated(real)
        no_overlap(mutated, real)
        return Captured(
            graph=Graph(graph_name(self.model), inputs, params, nodes, tuple(outputs)),
            structure=flatten(self.args, self.kwargs)[1],
            leaves=tuple(self.leaves),
            slots=tuple(slots),
            tied=tuple(pair for pair in self.state.tied if pair[0] in slots),
            modules=self.state.facts(),
            reads=(*self.state.reads(), *reads_of_functions(self.model, self.state.ran())),
            hooks=self.state.hooks(),
            results=tuple(results),
            out_spec=out_spec,
            mutated=mutated,
            requires_grad=tuple(name for name, t in real.items() if t.requires_grad),
            zero_offset=addresses_memory(nodes, real),
            autocast=torch.is_autocast_enabled(self.device),
            default_dtype=torch.get_default_dtype(),
            device=self.device,
        )

    def _outputs(self, out: Any) -> tuple[list[Output], list[Result], Any]:
        """Each distinct tensor is one graph output, in order of first appearance."""
        leaves, spec = tree_flatten(out)
        outputs: list[Output] = []
        number: dict[int, int] = {}
        results = []
        for x in leaves:
            if not isinstance(x, torch.Tensor):
                results.append(Result(literal=_literal(x)))
                continue
            fake = self.recorder.fake_of(x)
            if x.requires_grad and x.grad_fn is not None:
                raise CompileError(
                    "MC012",
                    "the model returns a result that requires a gradient (torch.enable_grad inside it)",
                    remedy="Call .detach() on it, or leave the grad mode to the caller.",
                )
            if id(fake) not in number:
                number[id(fake)] = len(outputs)
                outputs.append(Output(self.recorder.value_of(fake), eager_strides(fake)))
            results.append(self._result(fake, number[id(fake)]))
        return outputs, results, spec

    def _result(self, fake: torch.Tensor, output: int) -> Result:
        leaf = next((i.leaf for i in self.inputs if i.fake is fake), None)
        return Result(output, leaf, self.state.slot_of.get(id(fake)))

    def _used_slots(self, outputs: list[Output]) -> list[Slot]:
        """Of all parameters, those that the graph reads."""
        used = {v.name for n in self.recorder.nodes for v in n.operands}
        used |= {o.value.name for o in outputs}
        return [s for s in self.state.slots if s.name in used]

    def _mutated(self, names: Iterable[str]) -> tuple[str, ...]:
        """Which arguments were written to, by ops or (batch norm) behind the schema's back."""
        arguments = self.arguments | self.state.arguments
        hidden = {v.name for n in self.recorder.nodes for v in hidden_writes(n)}
        memory = {n: arguments[n].check(n) for n in names}
        return tuple(n for n in memory if memory[n] in self.recorder.written or n in hidden)


def _literal(x: Any) -> Any:
    """A part of the return value that is no tensor. CompileError MC010 if it could hide one."""
    if isinstance(x, _VALUES) or callable(x):
        return x
    raise CompileError(
        "MC010",
        f"the model returns a {type(x).__name__}, which may hold tensors",
        remedy="Return tensors in tuples, lists or dicts, or register the class with "
        "torch.utils._pytree.register_pytree_node.",
    )
