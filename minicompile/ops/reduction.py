"""Reductions and scans: an associative combine along axes.

Reduced axes disappear (`keepdim` is a reshape around it). Half precision is cast to f32 first by the
composites. Sums may be taken in any order: that is the freedom every PyTorch kernel takes, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from minicompile.ir.types import TensorType, from_torch
from minicompile.ops.registry import Emitter, Kind, identity, primitive


def _reduced(x: TensorType, *, dims: tuple[int, ...]) -> TensorType:
    if not all(0 <= d < x.ndim for d in dims) or len(set(dims)) != len(dims):
        raise TypeError(f"dims {dims} are not distinct axes of {x}")
    return x.with_shape(tuple(n for d, n in enumerate(x.shape) if d not in dims))


def _over_axes(f: Callable[..., Any], combine: str) -> Callable[..., torch.Tensor]:
    """A reference that reduces one axis after the other, from the last; no axes: x itself.

    Over an axis of size 0 it gives the neutral element of `combine` (-inf for max).
    """

    def meaning(x: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
        for d in sorted(dims, reverse=True):
            shape = (*x.shape[:d], *x.shape[d + 1 :])
            neutral = identity(combine, from_torch(x.dtype))
            x = f(x, d) if x.shape[d] else torch.full(shape, neutral, dtype=x.dtype)
        return x

    return meaning


def _reduction(name: str, f: Callable[..., Any], combine: str, doc: str, domain: str) -> Emitter:
    meaning = _over_axes(f, combine)
    return primitive(name, Kind.REDUCTION, _reduced, meaning, doc, combine=combine, domain=domain)


def _sum(x: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
    return x.sum(dims, dtype=x.dtype) if dims else x


reduce_sum = primitive(
    "reduce_sum", Kind.REDUCTION, _reduced, _sum, "Sum over the axes `dims`.", combine="add",
    domain="fiu",
)  # fmt: skip
reduce_prod = _reduction(
    "reduce_prod", lambda x, d: x.prod(d, dtype=x.dtype), "mul", "Product over `dims`.", "fiu"
)
reduce_max = _reduction(
    "reduce_max", lambda x, d: x.amax(d), "max", "Maximum over `dims`; NaN wins.", "fiu"
)
reduce_min = _reduction(
    "reduce_min", lambda x, d: x.amin(d), "min", "Minimum over `dims`; NaN wins.", "fiu"
)
reduce_any = _reduction("reduce_any", lambda x, d: x.any(d), "or", "Is any one true?", "b")
reduce_all = _reduction("reduce_all", lambda x, d: x.all(d), "and", "Are all true?", "b")


def _scanned(x: TensorType, *, dim: int) -> TensorType:
    if not 0 <= dim < x.ndim:
        raise TypeError(f"dim {dim} is not an axis of {x}")
    return x.pure()


def _scan(name: str, f: Callable[..., torch.Tensor], combine: str, doc: str) -> Emitter:
    return primitive(
        name, Kind.SCAN, _scanned, lambda x, dim: f(x, dim), doc, combine=combine, domain="fiu"
    )


scan_sum = _scan(
    "scan_sum", lambda x, d: x.cumsum(d, dtype=x.dtype), "add", "Running sum along `dim`."
)
scan_prod = _scan(
    "scan_prod", lambda x, d: x.cumprod(d, dtype=x.dtype), "mul", "Running product along `dim`."
)
scan_max = _scan("scan_max", lambda x, d: x.cummax(d)[0], "max", "Running maximum; NaN stays.")
scan_min = _scan("scan_min", lambda x, d: x.cummin(d)[0], "min", "Running minimum; NaN stays.")
