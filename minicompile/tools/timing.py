"""Times that can be compared: the candidates take turns, and the median of each counts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def take_turns(
    candidates: dict[str, Callable[[], Any]], seconds: float = 2.0, least: int = 5
) -> dict[str, float]:
    """The median time of each candidate, in seconds.

    They run in turn, so that a machine that gets slower hits all alike, for about `seconds` in all and at
    least `least` times each, after one run that does not count.
    """
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for f in candidates.values():
        f()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < least:
        for name, f in candidates.items():
            start = time.perf_counter()
            f()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def in_words(seconds: float) -> str:
    """``1.24 ms``: three digits and a unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
