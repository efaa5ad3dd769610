"""Every op of the registry, compiled: the samples, other dtypes, special values, odd layouts."""

from __future__ import annotations

import pytest

from minicompile.ops.registry import COMPOSITES
from tests.registry_calls import OVERLOADS, UNDEFINED, calls_of, check_together

SIZE = 12  # calls in one compiled function


def batches(overloads: list[str]) -> list[list[str]]:
    return [overloads[n : n + SIZE] for n in range(0, len(overloads), SIZE)]


def first_of_each() -> list[str]:
    """One overload of each entry: ``add.Tensor`` and ``add.Scalar`` share one decomposition."""
    found = {id(entry): entry.overloads[0].removeprefix("aten.") for entry in COMPOSITES.values()}
    return [o for o in found.values() if o not in UNDEFINED]


def name(overloads: list[str]) -> str:
    return f"{overloads[0]}..{overloads[-1]}"


@pytest.mark.parametrize("overloads", batches(OVERLOADS), ids=name)
def test_samples_are_native(overloads: list[str]) -> None:
    calls = [call for o in overloads for call in calls_of(o)]
    for n in range(0, len(calls), SIZE):
        check_together(calls[n : n + SIZE], native=True)
