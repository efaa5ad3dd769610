"""Every op of the registry, compiled: the samples, other dtypes, special values, odd layouts.

The samples are compiled for every overload.  For the rest a few ops stand for all: between them they
contain every primitive, and below the registry only primitives are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pytest
import torch

from minicompile.errors import NotNative
from minicompile.ir.types import DType, bf16, bool_, f32, f64, i64
from minicompile.ops.samples import TensorRecipe
from tests.layouts import laid_out
from tests.ops.harness import decompose_call
from tests.registry_calls import OVERLOADS, UNDEFINED, Call, calls_of, check_together

SIZE = 12  # calls in one compiled function
SPECIALS = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5])
# Eager's own way of computing them shows at NaN and infinity, and is not one that anybody relies on:
#   attention gives 0 for a row of NaN, gelu NaN for inf, group norm mixes infinities of a group;
#   a running mean of an infinite element depends on where it stands; convolutions multiply paddings
#   with weights; a place that is not a number is no place to sample from; distances expand the square.
NO_SPECIALS = ("attention", "gelu", "norm", "var", "std", "conv", "grid_sampler", "dist")
# In memory with gaps these read outside of their operand's elements, or refuse to:
NO_LAYOUTS = ("as_strided", "_reshape_alias", "_flash_attention", "_weight_norm")


def groups(items: Sequence[str]) -> list[Sequence[str]]:
    return [items[n : n + SIZE] for n in range(0, len(items), SIZE)]


def name(overloads: Sequence[str]) -> str:
    return f"{overloads[0]}..{overloads[-1]}"


def check_all(calls: Sequence[Call], native: bool = False) -> None:
    for n in range(0, len(calls), SIZE):
        check_together(calls[n : n + SIZE], native)


@pytest.mark.parametrize("overloads", groups(OVERLOADS), ids=name)
def test_samples_are_native(overloads: Sequence[str]) -> None:
    check_all([call for o in overloads for call in calls_of(o)], native=True)


# ---------------------------------------------------------------------------------- a few for all


def representatives(dtype: DType = f32) -> Iterator[Call]:
    """Calls, with tensors of this dtype in place of f32, that contain between them every primitive."""
    known: set[str] = set()
    for overload in OVERLOADS:
        if overload in UNDEFINED:
            continue
        for call in calls_of(overload, lambda r: _with_dtype(r, dtype)):
            if call.eager() is not None and (new := primitives_of(call) - known):
                known |= new
                yield call


def _with_dtype(recipe: TensorRecipe, dtype: DType) -> TensorRecipe:
    return recipe.with_dtype(dtype) if recipe.dtype is f32 else recipe


def primitives_of(call: Call) -> set[str]:
    try:
        return {node.op for node in decompose_call(call.overload, call.args, call.kwargs).nodes}
    except NotNative:
        return set()


def test_representatives_are_few() -> None:
    assert 40 < len(list(representatives())) < 120


@pytest.mark.parametrize("dtype", [f64, bf16, i64, bool_], ids=str)
def test_dtypes(dtype: DType) -> None:
    check_all(list(representatives(dtype)))


def special(t: torch.Tensor) -> torch.Tensor:
    """NaN, infinities and zeros of both signs among the elements of a float tensor."""
    if not t.is_floating_point() or not t.numel():
        return t
    flat = t.flatten()
    flat[::2] = SPECIALS.repeat(flat.numel())[: flat[::2].numel()].to(t.dtype)
    return flat.view(t.shape)


def test_special_values() -> None:
    calls = [c for c in representatives() if not any(w in c.overload for w in NO_SPECIALS)]
    check_all([c.with_tensors(special) for c in calls])


@pytest.mark.parametrize("layout", ["transposed", "gaps", "expanded", "offset"])
def test_layouts(layout: str) -> None:
    calls = [c for c in representatives() if not any(w in c.overload for w in NO_LAYOUTS)]
    moved = [c.with_tensors(lambda t: laid_out(t, layout)) for c in calls]
    check_all([c for c in moved if c.eager() is not None])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), ()], ids=str)
def test_empty_and_scalars(shape: tuple[int, ...]) -> None:
    """All tensors of a call in one shape without elements, or without axes."""
    sized = [c for c in representatives() if "batch_norm" not in c.overload]  # one size per channel
    calls = [c.with_tensors(lambda t: t.new_ones(shape)) for c in sized]
    check_all([c for c in calls if c.eager() is not None])
