"""Views, slices, joins, pads and rearrangements: corner cases beyond the registry's samples."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from minicompile.errors import NotNative
from minicompile.ops.registry import PRIMITIVES, Kind
from tests.ops.harness import check_composite, decompose_call

DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8)


def tensor(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    g = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-9, 9, shape, generator=g).to(dtype)


X = tensor(3, 4, 5)
CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("view", (X, [5, -1, 2])),
    ("view", (tensor(0, 3), [3, 0])),
    ("view", (tensor(2, 0), [-1, 2])),
    ("reshape", (tensor(), [1, 1])),
    ("permute", (X, [-1, 0, 1])),
    ("permute", (tensor(), [])),
    ("transpose.int", (X, -1, -3)),
    ("expand", (tensor(1, 3), [2, 4, -1])),
    ("expand", (tensor(1), [0])),
    ("squeeze", (tensor(1, 0, 1),)),
    ("squeeze.dim", (X, 1)),
    ("squeeze.dims", (tensor(1, 3, 1), [0, 1, -1])),
    ("unsqueeze", (X, -4)),
    ("slice.Tensor", (X, 1, -3, 100, 2)),
    ("slice.Tensor", (X, 1, 3, 1)),
    ("slice.Tensor", (X, 2, 9, 12)),
    ("slice.Tensor", (X, -1, None, None, 3)),
    ("slice.Tensor", (tensor(0, 3), 0, 0, 5)),
    ("select.int", (X, -1, -5)),
    ("narrow", (X, 1, 4, 0)),
    ("split.Tensor", (X, 10, 1)),
    ("split.Tensor", (tensor(0, 3), 2)),
    ("split_with_sizes", (X, [0, 5], 2)),
    ("chunk", (tensor(0, 3), 2)),
    ("unbind.int", (X, 2)),
    ("tensor_split.sections", (tensor(2, 3), 4)),
    ("cat", ([tensor(2, 0), tensor(2, 3)], 1)),
    ("cat", ([tensor(0), tensor(0)],)),
    ("cat", ([tensor(2, dtype=torch.uint8), tensor(2, dtype=torch.bfloat16)],)),
    ("cat", ([tensor(2, dtype=torch.bool), tensor(2, dtype=torch.int64)],)),
    ("stack", ([tensor(0, 2), tensor(0, 2)], -1)),
    ("flip", (tensor(0, 3), [0, 1])),
    ("flip", (X, [])),
    ("roll", (X, [7, -9], [0, 2])),
    ("roll", (tensor(0, 2), [1], [0])),
    ("roll", (X, [0])),
    ("repeat", (X, [2, 0, 1])),
    ("repeat", (tensor(2), [1, 1, 3])),
    ("repeat_interleave.self_int", (X, 0, 1)),
    ("unfold", (X, 1, 4, 3)),
    ("unfold", (X, 1, 0, 2)),
    ("unfold", (X, 2, 2, 7)),
    ("diagonal", (X, 1, 2, 0)),
    ("diagonal", (tensor(0, 3),)),
    ("diagonal", (tensor(7, 2), -4)),
    ("diag_embed", (tensor(0),)),
    ("diag_embed", (X, -2, 0, -1)),
    ("as_strided", (X, [2, 3, 2], [1, 7, 0], 3)),
    ("as_strided", (X, [], [], 5)),
    ("as_strided", (X, [0, 2], [1, 1])),
    ("as_strided_scatter", (X, tensor(2, 3), [2, 3], [20, 5], 1)),
    ("select_scatter", (X, tensor(3, 5), 1, -1)),
    ("slice_scatter", (X, tensor(3, 2, 5), 1, 0, 4, 3)),
    ("slice_scatter", (X, tensor(3, 0, 5), 1, 2, 2)),
    ("slice_scatter", (X, X, 0)),
    ("diagonal_scatter", (X, tensor(4, 2), -1, 0, 2)),
    ("constant_pad_nd", (X, [1, -2, -1, 3], 2)),
    ("constant_pad_nd", (X, [-5, 7], 2)),
    ("constant_pad_nd", (tensor(0), [1, 1], 1)),
    ("reflection_pad1d", (X, [4, 0])),
    ("reflection_pad1d", (X, [-1, 2])),
    ("replication_pad2d", (X, [-4, 6, 2, 0])),
    ("replication_pad2d", (X, [7, -4, 0, -1])),
    ("pixel_shuffle", (tensor(2, 0, 8, 1, 3), 2)),
    ("block_diag", ([tensor(2), tensor(0, 2), tensor(2, 1)],)),
    ("rot90", (X, -1, [0, 2])),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda k: f"{CASES[k][0]}-{k}")
def test_view(number: int, dtype: torch.dtype) -> None:
    op, args = CASES[number]
    if op.startswith("refl") or op.startswith("repl"):
        dtype = torch.float64 if dtype is torch.bool else dtype  # PyTorch has no kernel for bool

    def given(a: Any) -> Any:
        if isinstance(a, list):
            return [given(x) for x in a]
        return a.to(dtype) if isinstance(a, torch.Tensor) and op != "cat" else a

    check_composite(op, *map(given, args))


@pytest.mark.parametrize("op", ["reflection_pad1d", "replication_pad1d"])
def test_pads_copy_floats_exactly(op: str) -> None:
    x = torch.tensor([[0.0, -0.0, float("nan"), float("inf"), -1e-45]])
    check_composite(op, x, [2, 3])


def test_views_are_layouts_only() -> None:
    """Nothing that only moves elements computes: every primitive is a layout."""
    for op, args in CASES:
        if op in ("diag_embed", "diagonal_scatter", "slice_scatter", "as_strided_scatter", "cat"):
            continue
        kinds = {PRIMITIVES[n.op].kind for n in decompose_call(op, args).nodes}
        assert kinds <= {Kind.LAYOUT, Kind.CREATION}, op


def test_a_view_that_changes_nothing_is_the_value_itself() -> None:
    for op, args in (
        ("view", (X, [3, 4, 5])),
        ("permute", (X, [0, 1, 2])),
        ("expand", (X, [3, 4, 5])),
    ):
        call = decompose_call(op, args)
        assert not call.nodes and call.outputs[0].name == "x0"


def test_as_strided_beyond_its_operand_stays_extern() -> None:
    with pytest.raises(NotNative):
        decompose_call("as_strided", (tensor(4), [2, 3], [2, 1]))
