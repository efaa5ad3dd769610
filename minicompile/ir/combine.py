"""What the combines of the Loop IR (add, mul, max, min, or, and) do to arrays, and how memory starts out.

`max` and `min` give NaN if any operand is one; integers wrap around.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from minicompile.ir.types import DType

Reduce = Callable[[torch.Tensor, list[int]], torch.Tensor]
Combine = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

REDUCE: dict[str, Reduce] = {  # over some axes, which stay with size 1
    "add": lambda t, dims: t.sum(dims, keepdim=True, dtype=t.dtype),
    "mul": lambda t, dims: _product(t, dims),
    "max": lambda t, dims: t.amax(dims, keepdim=True),
    "min": lambda t, dims: t.amin(dims, keepdim=True),
    "or": lambda t, dims: t.any(dims, keepdim=True),
    "and": lambda t, dims: t.all(dims, keepdim=True),
}
COMBINE: dict[str, Combine] = {
    "add": torch.add,
    "mul": torch.mul,
    "max": torch.maximum,
    "min": torch.minimum,
    "or": torch.logical_or,
    "and": torch.logical_and,
}
SCATTER = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin", "or": "amax", "and": "amin"}


def _product(t: torch.Tensor, dims: list[int]) -> torch.Tensor:
    for d in dims:
        t = t.prod(d, keepdim=True, dtype=t.dtype)
    return t


def constant(value: bool | int | float, dtype: DType) -> torch.Tensor:
    """A 0-d tensor; integers wrap around."""
    if dtype.is_integer:
        return torch.tensor(int(value)).to(dtype.torch)
    return torch.tensor(value, dtype=dtype.torch)


def poisoned(shape: tuple[int, ...], dtype: DType) -> torch.Tensor:
    """Fresh memory: NaN, or the smallest integer."""
    if dtype.is_float:
        return torch.full(shape, float("nan"), dtype=dtype.torch)
    low = torch.iinfo(dtype.torch).min if dtype.is_integer else True
    return torch.full(shape, low, dtype=dtype.torch)
