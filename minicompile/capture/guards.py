"""Guards: for which calls does a capture hold?  One short, generated Python function says it.

    def guard(leaves):
        x, n = leaves
        return (
            type(x) is Tensor
            and x.dtype is float32
            and x.shape == (2, 8)
            and x.stride() == (8, 1)
            and x.is_cpu
            and type(n) is int and n == 3
            and model.training is False

It runs on every call, so it checks little: about 0.7 us for one tensor.  What one condition implies is
not asked again, and only those modules' `training` flags that the model looked at count.  `explain`
evaluates the same conditions one by one and says in words which is the first that fails.

What else the model reads (attributes, hooks, globals) and what is not watched: see `reads`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minicompile.capture.captured import Captured
from minicompile.capture.conditions import Builder, Condition


@dataclass(frozen=True)
class Guard:
    """The guard of one capture: its source `text`, and the function."""

    text: str
    check: Callable[[Sequence[Any]], bool]
    conditions: tuple[Condition, ...]
    names: tuple[str, ...]
    scope: dict[str, Any]

    def explain(self, leaves: Sequence[Any]) -> str:
        """The first condition that fails, in words: ``x: shape (4, 8), was (2, 8)``; "" if all hold."""
        if len(leaves) != len(self.names):
            return f"{len(leaves)} arguments, were {len(self.names)}"
        scope = {**self.scope, **dict(zip(self.names, leaves))}
        for c in self.conditions:
            if not _holds(c.test, scope):
                return c.words.format(now=eval(c.now, scope))
        return ""


def make_guard(captured: Captured) -> Guard:
    """Generate the guard. Its scope holds the few objects that it compares with."""
    builder = Builder(captured)
    builder.build()
    text, scope = builder.text(), builder.scope
    exec(compile(text, f"<guard of {captured.graph.name}>", "exec"), scope)
    names = tuple(leaf.name for leaf in captured.leaves)
    return Guard(text, scope["guard"], tuple(builder.conditions), names, scope)


def _holds(test: str, scope: dict[str, Any]) -> bool:
    try:
        return bool(eval(test, scope))
    except (KeyError, ValueError):  # what was read is gone
        return False
