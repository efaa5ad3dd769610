"""Calling PyTorch for one node: the bridge between ATen names in the IR and real tensors.

An op is written ``aten.add.Tensor``, ``aten.mm`` (the overload ``default`` is dropped), or
``torch_ops.NAMESPACE.NAME.OVERLOAD`` for any other namespace.  Its arguments are those of PyTorch's
own schema; a list there is a tuple here, a dtype is a `DType`, any other torch object a `TorchConst`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

from minicompile.errors import CompileError
from minicompile.ir.graph import Arg, Node, TorchConst, Value
from minicompile.ir.types import DType


def op_name(op: OpOverload) -> str:
    """``aten.add.Tensor`` for torch.ops.aten.add.Tensor; `torch_op` is the inverse."""
    namespace, name = op._schema.name.split("::")
    overload = op._overloadname
    if namespace != "aten":
        return f"torch_ops.{namespace}.{name}.{overload}"
    return f"aten.{name}" if overload == "default" else f"aten.{name}.{overload}"


@cache
def torch_op(name: str) -> OpOverload:
    """The PyTorch op that the IR calls `name`. CompileError MC001 if there is none."""
    root, *rest = name.split(".")
    if root == "aten":
        namespace, packet, overload = "aten", rest[0], rest[1] if len(rest) > 1 else "default"
    elif root == "torch_ops" and len(rest) == 3:
        namespace, packet, overload = rest
    else:
        raise CompileError("MC001", f"{name!r} does not name a PyTorch op")
    try:
        op = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    except AttributeError:
        raise CompileError(
            "MC001", f"this PyTorch ({torch.__version__}) has no op {name}"
        ) from None
    assert isinstance(op, OpOverload)
    return op


def is_random(name: str) -> bool:
    """Does the op draw random numbers? Such nodes must not be merged, moved or dropped."""
    return torch.Tag.nondeterministic_seeded in torch_op(name).tags


def torch_argument(arg: Arg, env: Mapping[str, Any]) -> Any:
    """The argument as PyTorch wants it; values are looked up by name in `env`."""
    if isinstance(arg, Value):
        return env[arg.name]
    if isinstance(arg, tuple):
        return [torch_argument(a, env) for a in arg]
    if isinstance(arg, DType):
        return arg.torch
    if isinstance(arg, TorchConst):
        return torch_constant(arg.text)
    return arg


@cache
def torch_constant(text: str) -> Any:
    """``torch.preserve_format``, ``torch.strided``, ``torch.device('cpu')`` as the object meant."""
    if text.startswith("torch.device("):
        return torch.device(text[len("torch.device(") : -1].strip("'\""))
    return getattr(torch, text.removeprefix("torch."))


def call_node(node: Node, env: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    """Run one ATen node on real tensors: one tensor per result of the node, in order.

    `env` maps value names to tensors and must hold every operand.  In-place ops write into their
    operand and return it; so do ops that only write and return nothing.
    """
    op = torch_op(node.op)
    args = [torch_argument(a, env) for a in node.args]
    kwargs = {k: torch_argument(v, env) for k, v in node.attrs}
    results = result_tensors(op, args, kwargs, op(*args, **kwargs))
    if len(results) != len(node.outs):
        raise CompileError(
            "MC021", f"{node.op} gave {len(results)} tensors, the node names {len(node.outs)}"
        )
    return tuple(results)


def result_tensors(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> list[torch.Tensor]:
    """The tensors an op made: in its result, or else those it wrote (``_foreach_add_``)."""
    found = list(tensors_in(result))
    if found or not op._schema.is_mutable:
        return found
    return list(tensors_in([x for _, x in written_arguments(op, args, kwargs)]))


def written_arguments(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """(schema name, argument) for each argument that the op writes to: ``self`` of add_, ``out``."""
    written = []
    for i, a in enumerate(op._schema.arguments):
        if a.alias_info is not None and a.alias_info.is_write:
            given = args[i] if i < len(args) and not a.kwarg_only else kwargs.get(a.name)
            if given is not None:
                written.append((a.name, given))
    return written


# In training these write running_mean and running_var (arguments 3 and 4), which their schema hides.
_HIDDEN_WRITERS = ("aten.native_batch_norm", "aten.batch_norm", "aten.cudnn_batch_norm")


def hidden_writes(node: Node) -> tuple[Value, ...]:
    """The operands that a node writes to although its schema does not say so."""
    if node.op not in _HIDDEN_WRITERS or not node.args[5]:
        return ()
    return tuple(a for a in node.args[3:5] if isinstance(a, Value))


def tensors_in(x: Any) -> Iterable[torch.Tensor]:
    """The tensors in nested lists and tuples, in order."""
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, list | tuple):
        for y in x:
            yield from tensors_in(y)


def place(t: torch.Tensor, strides: tuple[int, ...] | None) -> torch.Tensor:
    """A fresh tensor equal to t whose memory has these strides (None: row-major), as eager had it.

    Strides may be 0 (an expanded tensor) or leave gaps (a slice), as any view's.
    """
    shape = tuple(t.shape)
    if strides is None:
        return t.clone(memory_format=torch.contiguous_format)
    out = torch.empty_strided(shape, strides, dtype=t.dtype, device=t.device)
    overwrite(out, t)
    return out


def overwrite(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy, also into an expanded tensor: along an axis of stride 0 all is the same memory, written once."""
    for axis, step in enumerate(target.stride()):
        if step == 0 and target.shape[axis] > 1:
            target, source = target.narrow(axis, 0, 1), source.narrow(axis, 0, 1)
    target.copy_(source)


def twins(arguments: Sequence[Any]) -> list[Any]:
    """The same arguments with a copy of each tensor: one that lies in memory as the original does.

    A tensor that comes twice is one tensor among the copies, too.
    """
    copies = {
        id(x): place(x.detach(), x.stride()) for x in arguments if isinstance(x, torch.Tensor)
    }
    return [copies.get(id(x), x) for x in arguments]
