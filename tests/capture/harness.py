"""Capture, functionalize, interpret with PyTorch itself, compare with eager: values, strides, mutations."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from minicompile.capture import Captured, Functionalize, capture, flatten
from minicompile.ir.graph import Graph
from minicompile.ir.torch_call import call_node, place, torch_op


def interpret(graph: Graph, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run a functionalized graph on real tensors; arguments are really written to."""
    env = dict(zip([v.name for v in graph.arguments], tensors))
    for node in graph.nodes:
        for v, t in zip(node.outs, call_node(node, env), strict=True):
            assert (tuple(t.shape), t.dtype) == (v.type.shape, v.type.dtype.torch), node
            env[v.name] = t
    for name, v in graph.writes:
        env[name].copy_(env[v.name])
    return [_output(env, o) for o in graph.outputs]


def _output(env: dict[str, torch.Tensor], o: Any) -> torch.Tensor:
    t = env[o.value.name]
    if o.view is None:
        return place(t, o.strides)
    shape, strides, offset = o.view
    return t.as_strided(shape, strides, t.storage_offset() + offset)


def same_as_eager(
    model: Callable[..., Any], *args: Any, exact: bool = True, **kwargs: Any
) -> tuple[Captured, Graph]:
    """Check one call; gives what was captured, and the pure graph."""
    twin, twin_args, twin_kwargs = copy.deepcopy((model, args, kwargs))
    with torch.no_grad():
        captured = capture(model, args, kwargs)
        graph = Functionalize().run(captured.graph)
        assert not any(torch_op(n.op)._schema.is_mutable for n in graph.nodes)
        leaves, structure = flatten(args, kwargs)
        assert structure == captured.structure
        tensors = [leaves[i] for i in captured.input_indices] + [s.read() for s in captured.slots]
        torch.manual_seed(0)
        got = captured.rebuild(interpret(graph, tensors), leaves)
        torch.manual_seed(0)
        expected = twin(*twin_args, **twin_kwargs)
    compare(got, expected, exact)
    compare((args, kwargs), (twin_args, twin_kwargs), exact)
    if isinstance(model, nn.Module):
        compare(dict(model.state_dict()), dict(twin.state_dict()), exact)
    return captured, graph


def compare(got: Any, expected: Any, exact: bool) -> None:
    """Leaf by leaf: values, dtypes and strides."""
    got_leaves, expected_leaves = tree_leaves(got), tree_leaves(expected)
    assert len(got_leaves) == len(expected_leaves)
    for a, b in zip(got_leaves, expected_leaves):
        if not isinstance(b, torch.Tensor):
            assert type(a) is type(b) and a == b
            continue
        assert (a.stride(), a.dtype) == (b.stride(), b.dtype)
        tolerance = {"rtol": 0, "atol": 0} if exact else {}
        torch.testing.assert_close(a, b, equal_nan=True, **tolerance)


def ops(graph: Graph) -> list[str]:
    """The names of a graph's ops, in order."""
    return [n.op for n in graph.nodes]
