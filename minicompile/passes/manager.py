"""Running a pipeline: a list of passes, with everything around it that helps to understand and debug.

    manager = PassManager.of("decompose,fold,simplify,cse,dce,fuse{max_inputs=8}", disable=("cse",))
    graph, records = manager.run(graph)
    print(records[1].sentence)                       # fold rewrote 3 of 31 nodes: m.py:8

Each pass runs between its checks: requires, run, ensures, verify.  A pass that fails becomes a CompileError
MC030 with the pass's name and the IR around the place where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from minicompile.errors import CompileError, unknown_name
from minicompile.passes.base import PASSES, Pass, register, unregister, with_placed
from minicompile.passes.changes import Changes, Subject, collect, name_of
from minicompile.passes.pipeline import parse_pipeline, print_pipeline
from minicompile.passes.properties import check

__all__ = [
    "PASSES", "Hooks", "Pass", "PassManager", "Record", "parse_pipeline", "print_pipeline", "register",
    "unregister",
]  # fmt: skip


@dataclass(frozen=True)
class Record:
    """One executed pass: the IR after it, the time it took, and what it changed.

    `counts` is rule -> how often it fired; `sentence` says it in words; `refused` rewrites were not made
    because the limit was reached.
    """

    name: str
    ir: Any
    seconds: float
    counts: dict[str, int]
    sentence: str
    subjects: tuple[str, ...] = ()
    refused: int = 0
    step: str = ""  # with its options: fuse{max_inputs=8}

    @property
    def changed(self) -> bool:
        return bool(self.counts)

    @property
    def note(self) -> str:
        """The sentence for tables that have the pass's name in another column."""
        return self.sentence.removeprefix(f"{self.name} ")


@dataclass(frozen=True)
class Hooks:
    """Called while the pipeline runs; any may be None.

    should_run(pass, ir) -> bool; before(pass, ir); after(pass, record); on_rewrite(pass, rule, node or
    kernel name); on_error(pass, ir, error).
    """

    should_run: Callable[[Pass, Any], bool] | None = None
    before: Callable[[Pass, Any], None] | None = None
    after: Callable[[Pass, Record], None] | None = None
    on_rewrite: Callable[[Pass, str, Subject], None] | None = None
    on_error: Callable[[Pass, Any, Exception], None] | None = None


def default_verify(ir: Any) -> None:
    """The verifier of the IR's level."""
    from minicompile.ir.verify import verify

    verify(ir)


@dataclass(frozen=True)
class PassManager:
    """A pipeline and how to run it. `max_rewrites` counts over all passes together."""

    pipeline: tuple[Pass, ...]
    disable: tuple[str, ...] = ()
    hooks: Hooks = field(default_factory=Hooks)
    verify: Callable[[Any], None] | None = default_verify
    max_rewrites: int | None = None

    def __post_init__(self) -> None:
        valid = sorted({*PASSES, *(p.name for p in self.pipeline)})
        for name in self.disable:
            if name not in valid:
                raise unknown_name("pass", name, valid)

    @classmethod
    def of(cls, text: str | Iterable[Pass], **options: Any) -> PassManager:
        """From pipeline text (or passes); passes registered with `after=` are put in their places."""
        steps = parse_pipeline(text) if isinstance(text, str) else tuple(text)
        return cls(with_placed(steps), **options)

    def __str__(self) -> str:
        return print_pipeline(self.pipeline)

    def run(self, ir: Any) -> tuple[Any, tuple[Record, ...]]:
        """The IR after the last pass, and one record for each pass that ran."""
        records: list[Record] = []
        left = self.max_rewrites
        for step in self.pipeline:
            if step.name in self.disable or not self._should_run(step, ir):
                continue
            record = self.run_pass(step, ir, left)
            records.append(record)
            ir = record.ir
            if left is not None:
                left -= sum(record.counts.values())
        return ir, tuple(records)

    def _should_run(self, step: Pass, ir: Any) -> bool:
        return self.hooks.should_run is None or self.hooks.should_run(step, ir)

    def run_pass(self, step: Pass, ir: Any, max_rewrites: int | None = None) -> Record:
        """One pass between its checks and hooks. CompileError MC030 if it fails."""
        hooks = self.hooks
        changes = Changes(max_rewrites)
        if hooks.on_rewrite is not None:
            on_rewrite = hooks.on_rewrite
            changes.on_rewrite = lambda rule, subject: on_rewrite(step, rule, subject)
        if hooks.before is not None:
            hooks.before(step, ir)
        try:
            record = self._checked(step, ir, changes)
        except Exception as e:
            if hooks.on_error is not None:
                hooks.on_error(step, ir, e)
            raise e if isinstance(e, CompileError) else failure(step, ir, changes, e) from e
        if hooks.after is not None:
            hooks.after(step, record)
        return record

    def _checked(self, step: Pass, ir: Any, changes: Changes) -> Record:
        check(ir, step.requires, f"{step.name} requires")
        start = time.perf_counter()
        after: Any = collect(changes, lambda: step.run(ir))
        seconds = time.perf_counter() - start
        check(after, step.ensures, f"{step.name} ensures")
        if self.verify is not None and after is not ir:
            self.verify(after)
        return Record(
            step.name, after, seconds, changes.counts, step.summary(ir, after, changes),
            tuple(changes.subjects), changes.refused, str(step),
        )  # fmt: skip


def failure(step: Pass, ir: Any, changes: Changes, e: Exception) -> CompileError:
    """MC030: which pass, what it said, and the lines of IR around the node it was looking at."""
    focus = changes.focus
    where = "" if focus is None or isinstance(focus, str) else changes_where(focus)
    return CompileError(
        "MC030",
        f"pass {step.name} failed: {type(e).__name__}: {e}",
        where=where,
        context=around(ir, "" if focus is None else name_of(focus)),
        remedy=f'disable=("{step.name}",) compiles without this pass.',
    )


def changes_where(node: Any) -> str:
    from minicompile.ir.location import lines

    return lines(node.origins)


def around(ir: Any, name: str, margin: int = 3) -> str:
    """The lines of the IR's text around the definition of `name`; its first lines if there is no name."""
    from minicompile.ir.text import text

    rows = str(text(ir)).splitlines()
    hits = [i for i, row in enumerate(rows) if name and f"{name}:" in row]
    middle = hits[0] if hits else margin
    return "\n".join(rows[max(0, middle - margin) : middle + margin + 1])
