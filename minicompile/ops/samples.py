"""Sample arguments for registry entries: small recipes of tensors, made real by `make`.

    @composite("gather", samples=[sample(floats(3, 4), 1, ints(3, 2, low=0, high=4))])

Per-op tests, the random-program generator and the docs are derived from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from minicompile.ir.types import DType, bool_, f32, i64


@dataclass(frozen=True)
class TensorRecipe:
    """A random tensor: floats normal, or uniform in [low, high); integers uniform in [low, high)."""

    dtype: DType
    shape: tuple[int, ...]
    low: float | None = None
    high: float | None = None

    def with_dtype(self, dtype: DType) -> TensorRecipe:
        return replace(self, dtype=dtype)

    def make(self, generator: torch.Generator) -> torch.Tensor:
        if self.dtype.is_float:
            return self._floats(generator).to(self.dtype.torch)
        low, high = self.low, self.high
        if self.dtype.kind == "b":
            low, high = 0, 2
        elif low is None or high is None or int(low) >= int(high):
            low, high = (0, 9) if self.dtype.kind == "u" else (-4, 5)
        assert low is not None and high is not None
        made = torch.randint(int(low), int(high), self.shape, generator=generator)
        return made.to(self.dtype.torch)

    def _floats(self, generator: torch.Generator) -> torch.Tensor:
        if self.low is None or self.high is None:
            return torch.randn(self.shape, generator=generator, dtype=torch.float64)
        unit = torch.rand(self.shape, generator=generator, dtype=torch.float64)
        return unit * (self.high - self.low) + self.low


def floats(
    *shape: int, low: float | None = None, high: float | None = None, dtype: DType = f32
) -> TensorRecipe:
    """Floats: normal, or uniform in [low, high)."""
    return TensorRecipe(dtype, shape, low, high)


def ints(*shape: int, low: int = -4, high: int = 5, dtype: DType = i64) -> TensorRecipe:
    """Integers, uniform in low ... high-1."""
    return TensorRecipe(dtype, shape, low, high)


def bools(*shape: int) -> TensorRecipe:
    return TensorRecipe(bool_, shape)


def make(a: Any, generator: torch.Generator) -> Any:
    """Recipes to tensors, DTypes to torch dtypes, tuples to lists; anything else as it is."""
    if isinstance(a, TensorRecipe):
        return a.make(generator)
    if isinstance(a, DType):
        return a.torch
    if isinstance(a, (tuple, list)):
        return [make(x, generator) for x in a]
    return a
