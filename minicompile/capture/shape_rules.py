"""Where PyTorch's rule for fake tensors is not what its CPU kernel does: rules of our own.

A wrong stride here would be a wrong stride of the compiled model's results, or a `view` that the model
may take and its capture may not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch._prims_common import suggest_memory_format
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

aten = torch.ops.aten


def grouped_mm(a: Any, b: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """PyTorch's own insists on bf16, its CPU kernel does not."""
    ragged = offs is not None and b.dim() == 3
    shape = (a.shape[0], b.shape[-1]) if ragged else (*a.shape[:-1], b.shape[-1])
    return a.new_empty(shape, dtype=out_dtype or a.dtype)


def roll(x: torch.Tensor, shifts: Any, dims: Any = ()) -> torch.Tensor:
    """The CPU kernel joins two pieces, one axis after the other; without `dims` it flattens first."""
    if not dims:
        return torch.empty_like(x, memory_format=torch.contiguous_format)
    for shift, dim in zip(shifts, dims):
        n = x.shape[dim]
        start = -shift % max(n, 1)
        x = torch.cat([x.narrow(dim, start, n - start), x.narrow(dim, 0, start)], dim)
    return x


def layer_norm(x: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """As the CPU kernel; PyTorch's rule computes a variance, and imports torch.distributed for it (0.3 s)."""
    given = [t.shape for t in (weight, bias) if t is not None]
    if any(tuple(s) != tuple(shape) for s in (x.shape[x.dim() - len(shape) :], *given)):
        return aten.native_layer_norm.default(x, shape, weight, bias, eps)  # raises as eager does
    mixed = weight is not None and weight.dtype is not x.dtype
    kept = (*x.shape[: x.dim() - len(shape)], *(1 for _ in shape))
    statistics = x.new_empty(kept, dtype=weight.dtype if mixed else x.dtype)
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    return result, statistics, torch.empty_like(statistics)


def _new_memory(op: OpOverload) -> Callable[..., Any]:
    """Results in the memory format of the first operand; the fakes would keep any order of its axes."""

    def rule(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        def laid_out(t: Any) -> Any:
            if not isinstance(t, torch.Tensor) or t.dim() < 2:
                return t
            known = suggest_memory_format(x) if t.dim() == x.dim() else torch.contiguous_format
            return torch.empty_like(t, memory_format=known)

        return tree_map(laid_out, op(x, *args, **kwargs))

    return rule


def _as_sum(op: OpOverload) -> Callable[..., Any]:
    """Results laid out as those of every other pointwise op; the fakes would be row-major."""

    def rule(a: Any, b: Any, **kwargs: Any) -> Any:
        result = op(a, b, **kwargs)
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            return result
        return torch.empty_like(a + b, dtype=result.dtype)

    return rule


_NEW_MEMORY = (
    aten.native_batch_norm.default,
    aten._native_batch_norm_legit.default,
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_no_training.default,
    aten._native_batch_norm_legit_functional.default,
    aten._batch_norm_with_update.default,
    aten._batch_norm_with_update_functional.default,
    aten._batch_norm_no_update.default,
    aten.log_sigmoid_forward.default,
    aten.nll_loss2d_forward.default,
)
_AS_SUM = (aten.div.Tensor_mode, aten.floor_divide.default, aten.copysign.Tensor)

RULES: dict[OpOverload, Callable[..., Any]] = {
    aten._grouped_mm.default: grouped_mm,
    aten.roll.default: roll,
    aten.native_layer_norm.default: layer_norm,
    **{op: _new_memory(op) for op in _NEW_MEMORY},
    **{op: _as_sum(op) for op in _AS_SUM},
}


class ShapeRules(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is on, ops on fake tensors follow the rules."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return RULES.get(func, func)(*args, **(kwargs or {}))
