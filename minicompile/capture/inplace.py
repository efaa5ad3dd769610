"""The pure form of a writing op: ``add_.Tensor(x, y)`` is ``add.Tensor(x, y)`` written to x.

PyTorch names its ops regularly, so the pure form is found by name and signature: ``relu_`` -> ``relu``,
``add.out`` -> ``add.Tensor``.  The few irregular ones stand in a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch._ops import OpOverload

from minicompile.errors import CompileError
from minicompile.ir.graph import Arg, Node, Value, values_in
from minicompile.ir.torch_call import (
    hidden_writes,
    op_name,
    tensors_in,
    torch_argument,
    torch_op,
    written_arguments,
)
from minicompile.ir.types import DType, TensorType, from_torch

_IRREGULAR = {
    "aten.copy_": "aten.copy",
    "aten.bernoulli_.float": "aten.bernoulli.p",
    "aten.normal_": "aten.normal_functional",
}
# Batch norm in training: the pure form returns the new running statistics after its results.
_WITH_STATISTICS = {
    "aten.native_batch_norm": "aten._native_batch_norm_legit_functional",
    "aten._native_batch_norm_legit": "aten._native_batch_norm_legit_functional",
    "aten._batch_norm_with_update": "aten._batch_norm_with_update_functional",
}
# Ops that change the shape of a tensor and not its elements.
_RESHAPES = {
    "aten.t_": "aten.t",
    "aten.transpose_": "aten.transpose.int",
    "aten.squeeze_": "aten.squeeze",
    "aten.squeeze_.dim": "aten.squeeze.dim",
    "aten.squeeze_.dims": "aten.squeeze.dims",
    "aten.unsqueeze_": "aten.unsqueeze",
    "aten.as_strided_": "aten.as_strided",
}
_REPLACES_MEMORY = ("aten.resize", "aten.set_", "aten._resize_output")


@dataclass(frozen=True)
class PureCall:
    """``extra..., results... = op(args, attrs)``, and results[i] is then written to targets[i].

    `reshapes`: the tensor itself takes the result's shape, which only an unshared one may.
    """

    op: str
    args: tuple[Arg, ...]
    attrs: tuple[tuple[str, Arg], ...]
    targets: tuple[Value, ...]
    results: tuple[Value, ...]
    extra: tuple[Value, ...] = ()
    reshapes: bool = False


def pure_call(node: Node) -> PureCall | None:
    """How to compute what `node` writes; None if it writes nothing. CompileError MC012 if unknown."""
    op = torch_op(node.op)
    if node.op in _RESHAPES:
        (target,) = values_in(node.args[0])
        pure = _RESHAPES[node.op]
        return PureCall(pure, node.args, node.attrs, (target,), node.outs, reshapes=True)
    if node.op in _WITH_STATISTICS:
        return _batch_norm(node)
    if not op._schema.is_mutable:
        return None
    written = written_arguments(op, node.args, dict(node.attrs))
    targets = tuple(values_in(tuple(x for _, x in written)))
    form = None if node.op.startswith(_REPLACES_MEMORY) else _functional(op)
    if form is None or len(targets) != len(node.outs):
        raise CompileError("MC012", f"{node.op} has no form without mutation")
    names = {name for name, _ in written} if "out" in op._overloadname else set()
    attrs = tuple((k, v) for k, v in node.attrs if k not in names)
    return PureCall(op_name(form), _with_defaults(op, form, node.args), attrs, targets, node.outs)


def _with_defaults(op: OpOverload, form: OpOverload, args: tuple[Arg, ...]) -> tuple[Arg, ...]:
    """The positional arguments, with those spelled out that only the writing form has defaults for."""
    n = len(args)
    return args + tuple(
        have.default_value
        for have, wanted in zip(op._schema.arguments[n:], form._schema.arguments[n:])
        if not wanted.kwarg_only and not wanted.has_default_value()
    )


def _batch_norm(node: Node) -> PureCall | None:
    """Running statistics come back as two more results."""
    hidden = not torch_op(node.op)._schema.is_mutable
    targets = tuple(values_in(hidden_writes(node) if hidden else node.args[3:5]))
    if not targets:
        return None
    results = tuple(Value(f"{t.name}_new", t.type.pure()) for t in targets)
    pure = _WITH_STATISTICS[node.op]
    return PureCall(pure, node.args, node.attrs, targets, results, extra=node.outs)


def _functional(op: OpOverload) -> OpOverload | None:
    """The overload that computes what `op` writes: same arguments, less those it only writes."""
    name = op_name(op)
    if name in _IRREGULAR:
        return torch_op(_IRREGULAR[name])
    namespace, packet_name = op._schema.name.split("::")
    inplace = packet_name.endswith("_")
    wanted = [
        (a.name, str(a.type))
        for a in op._schema.arguments
        if inplace or a.alias_info is None or not a.alias_info.is_write
    ]
    packet = getattr(getattr(torch.ops, namespace), packet_name.removesuffix("_"), None)
    for overload in packet.overloads() if packet is not None else ():
        candidate: OpOverload = getattr(packet, overload)
        have = [(a.name, str(a.type)) for a in candidate._schema.arguments]
        if not candidate._schema.is_mutable and have[: len(wanted)] == wanted:
            return candidate
    return None


def wide_dtypes(pure: PureCall, types: Iterable[TensorType]) -> list[DType | None]:
    """For each result: the dtype the pure op gives it, where that is not the dtype of its tensor.

    ``x.add_(y)`` with a half x and a float y computes in float and rounds to half.
    """
    if (
        pure.op in _WITH_STATISTICS.values()
    ):  # PyTorch's shape rule widens them, its kernel does not
        return [None for _ in types]
    values = {v.name: v for v in values_in((pure.args, tuple(v for _, v in pure.attrs)))}
    env = {
        name: torch.empty(v.type.dims, dtype=v.type.dtype.torch, device="meta")
        for name, v in values.items()
    }
    try:
        args = [torch_argument(a, env) for a in pure.args]
        out = torch_op(pure.op)(*args, **{k: torch_argument(a, env) for k, a in pure.attrs})
    except NotImplementedError:  # no shape rule: then no promotion either
        return [None for _ in types]
    got = [from_torch(t.dtype) for t in tensors_in(out)][len(pure.extra) :]
    return [g if g != t.dtype else None for g, t in zip(got, types)]
