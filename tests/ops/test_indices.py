"""Gathering and scattering: index ranges, negative indices, empty tensors, dtypes, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from minicompile.errors import NotNative
from tests.ops.harness import check_composite, decompose_call, execute

X = torch.arange(60.0).reshape(3, 4, 5)


def i(*values: Any, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


EMPTY = torch.zeros(0, dtype=torch.int64)
INDICES: list[list[torch.Tensor | None]] = [
    [i(0, -1, 2)],
    [i(0, -1, dtype=torch.int32)],
    [None, i(3, -4)],
    [None, None, i(4, 0, -5)],
    [i(0, 1), i(2, 3)],
    [i(0, 1), None, i(2, 3)],
    [None, i([0], [1]), i(2, 3, 4)],
    [i([0], [1]), None, i(2, 3, 4)],
    [i(0, 1), i(2, 3), i(-1, -2)],
    [torch.tensor(1)],
    [None, torch.tensor(-1), i(0, 1)],
    [EMPTY],
    [None, EMPTY],
]


@pytest.mark.parametrize("number", range(len(INDICES)))
def test_index(number: int) -> None:
    for dtype in (torch.float32, torch.bool, torch.float16):
        check_composite("index.Tensor", X.to(dtype), INDICES[number])


@pytest.mark.parametrize("number", range(len(INDICES)))
@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(number: int, accumulate: bool) -> None:
    indices = INDICES[number]
    shape = X[tuple(slice(None) if k is None else k.long() for k in indices)].shape
    check_composite("index_put", X, indices, torch.ones(shape) * 0.5, accumulate)
    check_composite("index_put", X, indices, torch.tensor(7.0), accumulate)


def test_masks() -> None:
    """Reading by a mask has a size known only at run time; writing one value is a `where`."""
    with pytest.raises(NotNative):
        decompose_call("index.Tensor", (X, [X[..., 0] > 20]))
    check_composite("index_put", X, [X > 20], torch.tensor(7.0))
    check_composite("index_put", X, [None, X[0] > 3], torch.tensor(7.0))
    with pytest.raises(NotNative):
        decompose_call("index_put", (X, [X > 50], torch.zeros(9)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("include", [True, False])
def test_scatter_reduce(dtype: torch.dtype, reduce: str, include: bool) -> None:
    x, index = torch.arange(1, 13).reshape(3, 4).to(dtype), i([0, 0, 3], [2, 2, 2])
    src = torch.arange(2, 8).reshape(2, 3).to(dtype)
    check_composite("scatter_reduce.two", x, 1, index, src, reduce, include_self=include)


def test_sources_larger_than_the_index() -> None:
    index = i([0, 2], [3, 3])
    for op in ("scatter.src", "scatter_add"):
        check_composite(op, X[0], 1, index, torch.ones(4, 5))
        check_composite(op, X[0], -1, index[:, :0], torch.ones(4, 5))


def test_scalars() -> None:
    x, zero = torch.tensor(5.0), torch.tensor(0)
    check_composite("gather", x, 0, zero)
    check_composite("index_select", x, 0, zero)
    check_composite("scatter_add", x, 0, zero, torch.tensor(2.0))
    check_composite("index_add", x, 0, i(0), torch.tensor(2.0))
    check_composite("index_fill.int_Scalar", x, 0, zero, 3)
    check_composite("take", X, zero)


def test_empty_indices() -> None:
    check_composite("embedding", X[0], EMPTY)
    check_composite("gather", X[0], 1, torch.zeros(4, 0, dtype=torch.int64))
    check_composite("gather", X[0, 0], 0, torch.zeros(2, 0, dtype=torch.int64))
    check_composite("index_select", X, 1, EMPTY)
    check_composite("index_add", X, 1, EMPTY, torch.zeros(3, 0, 5))
    check_composite("take", X, EMPTY)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("embedding", (X[0], i(-1))),
        ("embedding", (X[0], i(4))),
        ("gather", (X[0], 0, i([4]))),
        ("gather", (X[0], 0, i([-1]))),
        ("index_select", (X, 1, i(-1))),
        ("index.Tensor", (X, [i(3)])),
        ("index.Tensor", (X, [i(-4)])),
        ("scatter_add", (X[0], 0, i([-1]), torch.ones(1, 1))),
        ("take", (X, i(60))),
        ("index_put", (X, [i(3)], torch.tensor(1.0))),
    ],
)
def test_where_eager_complains(op: str, args: tuple[Any, ...]) -> None:
    """An index out of range is an error here where it is one in eager."""
    name, _, overload = op.partition(".")
    with pytest.raises((IndexError, RuntimeError)):
        getattr(getattr(torch.ops.aten, name), overload or "default")(*args)
    with pytest.raises(IndexError):
        execute(decompose_call(op, args))


def test_masked_scatter() -> None:
    mask = torch.rand(3, 4, generator=torch.Generator().manual_seed(0)) > 0.5
    check_composite("masked_scatter", X[:, :, 0], mask, -X)
    check_composite("masked_scatter", X[:, :, 0], mask[:1], -X)
