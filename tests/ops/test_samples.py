"""Every composite agrees with PyTorch on every sample of its registry entry."""

from __future__ import annotations

import pytest

from minicompile.ops.registry import COMPOSITES
from tests.ops.harness import check_composite, samples_of

CASES = [
    pytest.param(o.removeprefix("aten."), k, id=f"{o}-{k}")
    for o, entry in COMPOSITES.items()
    for k in range(len(entry.samples))
]


@pytest.mark.parametrize(("overload", "number"), CASES)
def test_sample(overload: str, number: int) -> None:
    args, kwargs = samples_of(overload)[number]
    check_composite(overload, *args, values="empty" not in overload, **kwargs)


def test_every_composite_has_samples_and_a_docstring() -> None:
    lacking = [o for o, entry in COMPOSITES.items() if not entry.samples or not entry.doc]
    assert not lacking, f"no samples or docstring: {lacking}"
