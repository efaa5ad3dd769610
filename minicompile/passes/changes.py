"""What a pass reports while it runs, and how many rewrites it may still make.

Every pass asks before it changes something, in one uniform way:

    changes = current()
    if changes.fire("mul_one", node):      # x * 1 -> x
        ...                                # do it

`fire` counts, calls the `on_rewrite` hook, and says no once `limit` rewrites were made: bisecting on the
limit finds the rewrite that breaks a model.  A pass that runs by itself gets an unlimited counter.
"""

from __future__ import annotations

import contextvars
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from minicompile.ir.graph import Node
from minicompile.ir.location import Origin, lines

Subject: TypeAlias = Node | str  # a node, or the name of a kernel


@dataclass
class Changes:
    """The rewrites of one pass, in order: (rule, name of the node or kernel)."""

    limit: int | None = None
    on_rewrite: Callable[[str, Subject], None] | None = None
    fired: list[tuple[str, str]] = field(default_factory=list)
    origins: set[Origin] = field(default_factory=set)
    refused: int = 0
    focus: Subject | None = None  # what the pass looks at now, for error messages

    def fire(self, rule: str, subject: Subject) -> bool:
        """Record one rewrite of `subject`; False: the limit is reached, leave it as it is."""
        if self.limit is not None and len(self.fired) >= self.limit:
            self.refused += 1
            return False
        self.fired.append((rule, name_of(subject)))
        if isinstance(subject, Node):
            self.origins.update(subject.origins)
        if self.on_rewrite is not None:
            self.on_rewrite(rule, subject)
        return True

    @property
    def counts(self) -> dict[str, int]:
        """Rule -> how often it fired."""
        return dict(Counter(rule for rule, _ in self.fired))

    @property
    def subjects(self) -> list[str]:
        """The nodes or kernels that changed, each once, in order."""
        return list(dict.fromkeys(name for _, name in self.fired))

    @property
    def where(self) -> str:
        """``m.py:8, m.py:9``: the user lines touched, at most four of them."""
        all_lines = [x for x in lines(self.origins).split(", ") if x]
        return ", ".join(all_lines[:4]) + (", ..." if len(all_lines) > 4 else "")


_current: contextvars.ContextVar[Changes | None] = contextvars.ContextVar("changes", default=None)


def current() -> Changes:
    """The changes of the running pass; a fresh, unlimited record outside a PassManager."""
    found = _current.get()
    return Changes() if found is None else found


def collect(changes: Changes, run: Callable[[], object]) -> object:
    """run() while `changes` is the current record."""
    token = _current.set(changes)
    try:
        return run()
    finally:
        _current.reset(token)


def name_of(subject: Subject) -> str:
    if isinstance(subject, str):
        return subject
    return subject.outs[0].name if subject.outs else subject.op
