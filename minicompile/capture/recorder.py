"""The recorder: every ATen op that PyTorch is asked for becomes one node of the graph.

    with FakeTensorMode       shapes, dtypes and strides of results, without data
      with Recorder           one node per ATen op that arrives (TorchDispatchMode)
        with TorchCalls       the torch-level call around it; keeps two composites whole

In PyTorch this is `make_fx`, and under it proxies; torch.compile reads bytecode first (TorchDynamo) and
so can see `if` statements, which an ATen recorder cannot: `refuse` says so, with the user's line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

from minicompile.capture.constants import argument_type, to_arg, value_type
from minicompile.capture.module_state import ModuleState
from minicompile.capture.names import Namer
from minicompile.capture.provenance import Provenance
from minicompile.capture.shape_rules import RULES
from minicompile.errors import CompileError
from minicompile.ir.graph import Node, Value
from minicompile.ir.location import Origin
from minicompile.ir.torch_call import op_name, result_tensors, tensors_in, written_arguments

aten = torch.ops.aten

# Composites that stay one node: torch-level function -> the ATen op that PyTorch would call whole.
# Their pieces differ from kernel to kernel (flash, math, ...); what is meant is one thing.
KEEP: dict[Any, OpOverload] = {
    torch._C._nn.linear: aten.linear.default,
    torch._C._nn.scaled_dot_product_attention: aten.scaled_dot_product_attention.default,
}
# What ``torch.tensor([1, 2])`` calls with the new data, a real tensor.
_LIFTS = (aten.lift_fresh.default, aten.lift_fresh_copy.default)
# Calls that show a tensor to Python, where a fake one has nothing to show.
_PEEKS = {"__repr__", "__format__", "data_ptr"}


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes one node per op. Tensors are told apart by identity, so all are kept alive."""

    def __init__(
        self, namer: Namer, state: ModuleState, provenance: Provenance, device: str
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.namer, self.state, self.provenance, self.device = namer, state, provenance, device
        self.nodes: list[Node] = []
        self.values: dict[int, Value] = {}  # id(fake) -> its latest name
        self.written: set[int] = set()  # the memory that ops wrote to
        self.paused = 0
        self._alive: list[torch.Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, OpOverload):
            raise CompileError("MC010", f"{func} is a higher-order op, which cannot be recorded")
        if func.namespace == "prim":  # prim.device: the tensor is asked for a property
            return func(*args, **kwargs)
        if func in _LIFTS and not isinstance(args[0], FakeTensor):
            return self.literal(func, args[0])
        args, kwargs = tree_map(self.fake_of, (tuple(args), kwargs))
        result = RULES.get(func, func)(*args, **kwargs)
        if not self.paused:
            self.record(func, args, kwargs, result)
        return result

    def record(
        self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any
    ) -> None:
        """Write the node. An in-place op gives its tensor a new name, so that the text reads as SSA."""
        results = result_tensors(op, args, kwargs, out)
        loc = self.provenance.here()
        if not results:
            return self._no_tensor(op)
        for t in tensors_in([x for _, x in written_arguments(op, args, kwargs)]):
            self.written.add(t.untyped_storage()._cdata)
        arg = [to_arg(a, self.value_of) for a in args]
        attrs = [(k, to_arg(v, self.value_of)) for k, v in kwargs.items()]
        outs = tuple(self.name(t, self.namer.value()) for t in results)
        origin = Origin(loc, outs[0].name)
        self.nodes.append(Node(op_name(op), tuple(arg), tuple(attrs), outs, (origin,)))

    def literal(self, op: OpOverload, data: torch.Tensor) -> torch.Tensor:
        """New data inside the model, ``torch.tensor([1, 2])``: a constant, or `full` if it is one number."""
        fake: torch.Tensor = op(data)
        with _disable_current_modes():
            copy = data.clone()
            number = copy.item() if copy.numel() == 1 else None
        if number is None:
            self.record(op, (self.state.constant(copy),), {}, fake)
        else:
            self.record(aten.full.default, (copy.shape, number), {"dtype": copy.dtype}, fake)
        return fake

    @staticmethod
    def _no_tensor(op: OpOverload) -> None:
        if "assert" in op._schema.name and "metadata" not in op._schema.name:
            raise CompileError("MC011", f"{op_name(op)} checks a value that is not known yet")

    def name(self, fake: torch.Tensor, name: str) -> Value:
        """Give this tensor, the result of an op, a (new) name."""
        return self.bind(fake, Value(name, value_type(fake, self.device)))

    def bind(self, fake: torch.Tensor, value: Value) -> Value:
        """This tensor is now that value."""
        self._alive.append(fake)
        self.values[id(fake)] = value
        return value

    def value_of(self, t: torch.Tensor) -> Value:
        """The value that this tensor is now."""
        fake = self.fake_of(t)
        if id(fake) not in self.values:
            slot = self.state.slot_of.get(id(fake))
            if slot is None:
                raise CompileError("MC010", "the model uses a tensor made outside this capture")
            self.bind(fake, Value(slot.name, argument_type(fake, self.device)))
        return self.values[id(fake)]

    def fake_of(self, x: Any) -> Any:
        """Real tensors become the fakes that stand for them: parameters, or constants closed over."""
        if isinstance(x, torch.Tensor) and not isinstance(x, FakeTensor):
            return self.state.constant(x)
        return x


class TorchCalls(TorchFunctionMode):
    """Notes the torch-level call of each op, and records the composites of KEEP as one node."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", str(func))
        if name in _PEEKS:
            raise CompileError("MC011", f"the model prints or inspects a tensor ({name})")
        with self._active(name):
            op = KEEP.get(func)
            if op is None or _needs_pieces(args):
                return func(*args, **kwargs)
            return self._whole(op, func, args, kwargs)

    @contextlib.contextmanager
    def _active(self, name: str) -> Iterator[None]:
        """The call is the current one; an LSTM runs as plain cells, not as oneDNN's one opaque op."""
        calls, onednn = self.recorder.provenance.calls, torch._C._get_mkldnn_enabled()
        calls.append("" if name in ("__get__", "__set__") else name)
        torch._C._set_mkldnn_enabled(onednn and name != "lstm")
        try:
            yield
        finally:
            torch._C._set_mkldnn_enabled(onednn)
            calls.pop()

    def _whole(
        self, op: OpOverload, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        self.recorder.paused += 1
        try:
            out = func(*args, **kwargs)
        finally:
            self.recorder.paused -= 1
        if not self.recorder.paused:
            self.recorder.record(op, *in_schema_order(op, args, kwargs), out)
        return out


def in_schema_order(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as a dispatched op has them: positional up to the last one that is no default."""
    given, positional, defaults = dict(kwargs), list(args), {}
    for i, a in enumerate(op._schema.arguments):
        defaults[i if not a.kwarg_only else a.name] = a.default_value
        if i >= len(args) and not a.kwarg_only:
            positional.append(given.pop(a.name, a.default_value))
    while positional and _same(positional[-1], defaults[len(positional) - 1]):
        positional.pop()
    return positional, {k: v for k, v in given.items() if not _same(v, defaults[k])}


def _same(x: Any, default: Any) -> bool:
    plain = not isinstance(x, torch.Tensor) and type(x) is type(default)
    return x is default or (plain and bool(x == default))


def _needs_pieces(args: Sequence[Any]) -> bool:
    """Must a composite come apart? Autocast casts its operands, and backward reads what is inside."""
    return torch._C._is_any_autocast_enabled() or (
        torch.is_grad_enabled()
        and any(isinstance(a, torch.Tensor) and a.requires_grad for a in args)
    )
