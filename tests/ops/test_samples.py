"""Every composite agrees with PyTorch on every sample of its registry entry."""

from __future__ import annotations

import pytest

from minicompile.ops.registry import COMPOSITES
from tests.ops.harness import check_composite, samples_of

CASES = [
    pytest.param(overload, k, id=f"{overload}-{k}")
    for overload in (o.removeprefix("aten.") for o in COMPOSITES)
    for k in range(len(samples_of(overload)))
]


@pytest.mark.parametrize(("overload", "number"), CASES)
def test_sample(overload: str, number: int) -> None:
    args, kwargs = samples_of(overload)[number]
    check_composite(overload, *args, values="empty" not in overload, **kwargs)


@pytest.mark.parametrize("overload", [o.removeprefix("aten.") for o in COMPOSITES])
def test_has_samples_and_docstring(overload: str) -> None:
    assert samples_of(overload), "no sample fits its schema"
    assert COMPOSITES[f"aten.{overload}"].doc
