"""Memory layouts of the eager program, where its meaning depends on them: as_strided, and views returned."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minicompile.capture.fakes import fake_tensors
from minicompile.capture.shape_rules import ShapeRules
from minicompile.capture.views import View
from minicompile.errors import CompileError
from minicompile.ir.graph import Graph, Value
from minicompile.ir.torch_call import call_node, torch_argument, torch_op

Region = tuple[tuple[int, ...], tuple[int, ...], int]  # shape, strides, offset, in elements


def region(base: Value, strides: tuple[int, ...], views: Sequence[View]) -> Region:
    """Which elements of the base's memory a chain of views shows; PyTorch itself does the arithmetic."""
    dtype = base.type.dtype.torch
    t = torch.empty_strided(base.type.dims, strides, dtype=dtype, device="meta")
    for view in views:
        args = [torch_argument(a, {}) for a in view.args]
        t = torch_op(view.op)(t, *args, **{k: torch_argument(a, {}) for k, a in view.attrs})
    return tuple(t.shape), tuple(t.stride()), int(t.storage_offset())


def axis_order(strides: Sequence[int]) -> tuple[int, ...]:
    """The axes from the widest stride to the narrowest: the order in which memory is laid out."""
    return tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))


def dense_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The permutation of the axes that makes memory row-major.

    CompileError MC012 when the memory has gaps or overlaps: then logical values do not show it.
    """
    order = axis_order([s if n != 1 else 0 for n, s in zip(shape, strides)])
    step = 1
    for i in reversed(order):
        if shape[i] != 1 and strides[i] != step:
            raise CompileError(
                "MC012",
                "as_strided on memory with gaps or overlaps",
                remedy="Call .contiguous() on the tensor first, or use slicing or unfold.",
            )
        step *= shape[i]
    return order


def eager_strides(graph: Graph) -> dict[str, tuple[int, ...]]:
    """The strides that the values of a captured graph have in eager: it runs once on fake tensors."""
    rules = ShapeRules()  # type: ignore[no-untyped-call]
    with fake_tensors() as fake, fake, rules, torch.no_grad():
        env = {
            v.name: torch.empty_strided(v.type.dims, v.type.dense_strides, dtype=v.type.dtype.torch)
            for v in graph.arguments
        }
        for node in graph.nodes:
            env.update(zip([v.name for v in node.outs], call_node(node, env)))
    return {name: tuple(t.stride()) for name, t in env.items()}
