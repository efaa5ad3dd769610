"""Contraction, gather and scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from minicompile.ir.types import TensorType, i64
from minicompile.ops.registry import Kind, primitive


def parse_spec(spec: str) -> tuple[list[str], str]:
    """``"ik,kj->ij"`` -> (["ik", "kj"], "ij")."""
    left, right = spec.split("->")
    return left.split(","), right


def _contract(a: TensorType, b: TensorType, *, spec: str) -> TensorType:
    (sa, sb), out = parse_spec(spec)
    if a.dtype is not b.dtype:
        raise TypeError(f"operands differ in dtype: {a} and {b}")
    sizes: dict[str, Any] = {}
    for x, axes in ((a, sa), (b, sb)):
        if len(axes) != x.ndim or len(set(axes)) != len(axes):
            raise TypeError(f"{axes!r} does not name the axes of {x}, each once")
        for axis, n in zip(axes, x.shape):
            if sizes.setdefault(axis, n) != n:
                raise TypeError(f"axis {axis} has sizes {sizes[axis]} and {n}")
    return a.with_shape(tuple(sizes[axis] for axis in out))


contract = primitive(
    "contract",
    Kind.CONTRACTION,
    _contract,
    lambda a, b, spec: torch.einsum(spec, a, b),
    "Products of a and b, summed over the axes that the result lacks; `spec` as in einsum: 'ik,kj->ij'.",
    combine="add",
    domain="fiu",
)


def _gather(x: TensorType, *indices: TensorType, dims: tuple[int, ...]) -> TensorType:
    _check_indices(x, indices, dims)
    rest = tuple(n for d, n in enumerate(x.shape) if d not in dims)
    return x.with_shape(indices[0].shape + rest)


def _check_indices(x: TensorType, indices: tuple[TensorType, ...], dims: tuple[int, ...]) -> None:
    if len(dims) != len(indices) or not indices or len(set(dims)) != len(dims):
        raise TypeError("one index tensor for each of `dims`")
    for index in indices:
        if index.dtype is not i64 or index.shape != indices[0].shape:
            raise TypeError(f"index tensors are i64 and of one shape, not {index}")


def _subscripts(x: torch.Tensor, indices: tuple[torch.Tensor, ...], dims: Any) -> Any:
    """Index tensors moved in front of all other axes: (x permuted, subscript)."""
    rest = [d for d in range(x.dim()) if d not in dims]
    return x.permute([*dims, *rest]), tuple(indices)


def _gather_meaning(x: torch.Tensor, *indices: torch.Tensor, dims: Any) -> torch.Tensor:
    _check_bounds(x, indices, dims)
    moved, subscript = _subscripts(x, indices, dims)
    picked: torch.Tensor = moved[subscript]
    return picked


def _check_bounds(x: torch.Tensor, indices: tuple[torch.Tensor, ...], dims: Any) -> None:
    for index, d in zip(indices, dims):
        if index.numel() and not (int(index.min()) >= 0 and int(index.max()) < x.shape[d]):
            raise IndexError(f"index out of range in an axis of size {x.shape[d]}")


gather = primitive(
    "gather",
    Kind.GATHER,
    _gather,
    _gather_meaning,
    "x read at computed places: result[i..., r...] = x[..., indices[0][i...], ..., r...]. The index tensors "
    "(i64, one shape) address the axes `dims` of x; the other axes of x follow behind. IndexError when "
    "an index is not in 0 ... size-1 (composites add the size to negative ones first).",
)


def _scatter(
    x: TensorType, src: TensorType, *indices: TensorType, dims: tuple[int, ...], combine: str
) -> TensorType:
    _check_indices(x, indices, dims)
    want = _gather(x, *indices, dims=dims)
    if src.pure() != want:
        raise TypeError(f"the source must be {want}, not {src}")
    if combine not in _COMBINES:
        raise TypeError(f"combine is one of {', '.join(_COMBINES)}")
    return x.pure()


_COMBINES = ("set", "add", "mul", "max", "min")
_UFUNCS = {"mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter_meaning(
    x: torch.Tensor, src: torch.Tensor, *indices: torch.Tensor, dims: Any, combine: str
) -> torch.Tensor:
    _check_bounds(x, indices, dims)
    moved, subscript = _subscripts(x.clone(), indices, dims)
    out = moved.contiguous()
    if combine in ("set", "add"):
        return _restore(out.index_put(subscript, src, combine == "add"), x, dims)
    _UFUNCS[combine].at(out.numpy(), tuple(i.numpy() for i in subscript), src.numpy())
    return _restore(out, x, dims)


def _restore(moved: torch.Tensor, x: torch.Tensor, dims: Any) -> torch.Tensor:
    order = [*dims, *(d for d in range(x.dim()) if d not in dims)]
    return moved.permute([order.index(d) for d in range(x.dim())])


scatter = primitive(
    "scatter",
    Kind.SCATTER,
    _scatter,
    _scatter_meaning,
    "A copy of x with src combined into it at computed places: the inverse of gather. result[..., "
    "indices[0][i...], ..., r...] = combine(that element, src[i..., r...]), in the order of i.",
)
