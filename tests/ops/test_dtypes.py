"""Every pointwise op, reduction and creation on every dtype, with NaN, inf and -0.0 among the values.

The registry's samples are tried with all dtypes in place of their own. Where PyTorch raises there is
nothing to compare; a call that stays Extern (NotNative) is right by definition.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from minicompile.errors import NotNative
from minicompile.ir.types import DTYPES, DType
from minicompile.ops.registry import COMPOSITES, Sample
from minicompile.ops.samples import TensorRecipe, make
from tests.ops.harness import check_composite, decompose_call, execute, fits, operator

FAMILIES = (
    "aten_arithmetic", "aten_compare", "aten_extremes", "aten_math", "aten_logs", "aten_special", "aten_reduction",
    "aten_amax", "aten_variance", "aten_softmax", "aten_scan", "aten_creation", "aten_ranges",
    "aten_triangle",
)  # fmt: skip
OVERLOADS = [
    o.removeprefix("aten.")
    for o, entry in COMPOSITES.items()
    if entry.body.__module__.rpartition(".")[2] in FAMILIES and "empty" not in o
]
REAL = [d for d in DTYPES.values() if d.kind != "c"]
SPECIALS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5)
# PyTorch's running mean of an infinite element depends on where it stands:
NO_SPECIALS = ("var_mean.correction", "std_mean.correction")


def of_dtype(a: Any, dtype: DType, generator: torch.Generator, special: bool) -> Any:
    """The argument with tensors in another dtype; the first values of float tensors special ones."""
    if not isinstance(a, TensorRecipe):
        return make(a, generator)
    x: torch.Tensor = a.with_dtype(dtype).make(generator)
    if special and dtype.is_float and x.dim():
        values = torch.tensor(SPECIALS, dtype=x.dtype).repeat(2)
        order = torch.randperm(values.numel(), generator=generator)
        n = min(values.numel(), (x.numel() + 1) // 2)
        x.view(-1)[:n] = values[order][:n]
    return x


def compare(overload: str, case: Sample, dtype: DType, special: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    args = [of_dtype(a, dtype, generator, special) for a in case.args]
    kwargs = {k: of_dtype(v, dtype, generator, special) for k, v in case.kwargs.items()}
    if not fits(overload, args, kwargs):
        return
    try:
        operator(overload)(*args, **kwargs)
    except (RuntimeError, IndexError, NotImplementedError):
        return
    try:
        check_composite(overload, *args, **kwargs)
    except NotNative:
        return
    except AssertionError:  # eager may be the one that is inaccurate: ask it in f64
        if not dtype.is_float:
            raise
        check_against_f64(overload, args, kwargs)


def check_against_f64(overload: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    """The decomposition agrees with PyTorch's own result in float64, rounded."""
    wide = [a.double() if isinstance(a, torch.Tensor) else a for a in args]
    want = operator(overload)(*wide, **kwargs)
    gots = execute(decompose_call(overload, args, kwargs))
    for got, expect in zip(gots, want if isinstance(want, tuple) else (want,)):
        torch.testing.assert_close(got, expect.to(got.dtype), equal_nan=True)


@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
@pytest.mark.parametrize("overload", OVERLOADS)
def test_on_every_dtype(overload: str, special: bool) -> None:
    if special and overload in NO_SPECIALS:
        pytest.skip("infinite elements have no defined mean in PyTorch")
    for dtype in REAL if not special else [d for d in REAL if d.is_float]:
        for case in COMPOSITES[f"aten.{overload}"].samples:
            compare(overload, case, dtype, special)
