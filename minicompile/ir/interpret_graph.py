"""The reference interpreter of graphs: one torch call per node, at either level.

An ATen node is run by PyTorch itself, a primitive by the meaning that its registry entry states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from minicompile.ir.graph import Arg, Graph, Node, Value
from minicompile.ir.optable import OPS, is_elementwise
from minicompile.ir.torch_call import call_node, overwrite, place
from minicompile.ir.types import DType, c64, c128, f64


def run_graph(
    graph: Graph, inputs: Mapping[str, torch.Tensor], *, upcast: bool = False
) -> dict[str, torch.Tensor]:
    """Every value of the graph by name, inputs and parameters included; `inputs` names them all.

    upcast: every float is float64, and a cast to a float dtype means float64: the values that exact
    arithmetic would nearly give, to measure errors against.
    """
    env = dict(inputs)
    if upcast:
        env = {name: widened(t) for name, t in env.items()}
    for node in graph.nodes:
        results = run_node(widened_node(node) if upcast else node, env)
        for out, result in zip(node.outs, results, strict=True):
            env[out.name] = widened(result) if upcast else result
    return env


def run_node(node: Node, env: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The results of one node; `env` holds its operands."""
    if node.is_extern:
        return call_node(node, env)
    args = [_argument(a, env) for a in node.args]
    if is_elementwise(node.op):
        args = _constants(args)
    result: torch.Tensor = OPS[node.op].meaning(*args, **dict(node.attrs))
    return (result,)


def _argument(arg: Arg, env: Mapping[str, torch.Tensor]) -> Any:
    if isinstance(arg, Value):
        return env[arg.name]
    return tuple(_argument(a, env) for a in arg) if isinstance(arg, tuple) else arg


def _constants(args: list[Any]) -> list[Any]:
    """Python numbers are constants of the dtype of the last tensor (a first one may be a condition)."""
    dtype = [a.dtype for a in args if isinstance(a, torch.Tensor)][-1]
    return [a if isinstance(a, torch.Tensor) else torch.tensor(a, dtype=dtype) for a in args]


# ---------------------------------------------------------------------------------- results


def graph_outputs(graph: Graph, env: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """What the caller gets, in order: new tensors with the strides of eager, or views of inputs.

    Mutates the inputs as the graph says, after the new tensors are made and before views are taken.
    """
    new = [place(env[o.value.name], o.strides) if o.view is None else None for o in graph.outputs]
    write_back(graph, env)
    return [
        _view(env[o.value.name], o.view) if t is None else t for o, t in zip(graph.outputs, new)
    ]


def _view(t: torch.Tensor, region: Any) -> torch.Tensor:
    shape, strides, offset = region
    return t.as_strided(shape, strides, t.storage_offset() + offset)


def write_back(graph: Graph, env: Mapping[str, torch.Tensor]) -> None:
    """Mutate the inputs as the graph says; all values are read before the first one is written."""
    values = [(env[name], env[value.name].clone()) for name, value in graph.writes]
    with torch.no_grad():
        for target, value in values:
            overwrite(target, value)


def run_graph_outputs(graph: Graph, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs for these inputs and parameters (in this order); mutates inputs as the model does."""
    env = run_graph(graph, {v.name: t for v, t in zip(graph.arguments, inputs, strict=True)})
    return graph_outputs(graph, env)


# ---------------------------------------------------------------------------------- float64


def widened(t: torch.Tensor) -> torch.Tensor:
    """The same values in float64 or complex128; integers and bools as they are."""
    if t.is_complex():
        return t.to(torch.complex128)
    return t.to(torch.float64) if t.is_floating_point() else t


def widened_node(node: Node) -> Node:
    """The node with f64 in place of every float dtype among its arguments."""
    args, attrs = _wide(node.args), tuple((k, _wide(v)) for k, v in node.attrs)
    assert isinstance(args, tuple)
    return replace(node, args=args, attrs=attrs)


def _wide(arg: Arg) -> Arg:
    if isinstance(arg, tuple):
        return tuple(_wide(a) for a in arg)
    if isinstance(arg, DType):
        return f64 if arg.is_float else c128 if arg is c64 else arg
    return arg
