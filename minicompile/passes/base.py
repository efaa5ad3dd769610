"""What a pass is: a frozen dataclass. Fields are its options, the docstring is its contract.

    @register
    @dataclass(frozen=True)
    class Dce(Pass):
        '''Drop nodes whose results nobody reads. ... before / after ...'''

        name = "dce"
        verb = "dropped"

        def run(self, graph: Graph) -> Graph: ...

`register(MyPass, after="cse")` puts a pass of yours into every pipeline, behind `cse`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from minicompile.errors import CompileError, unknown_name
from minicompile.passes.changes import Changes


@dataclass(frozen=True)
class Pass:
    """Base of all passes: IR in, new IR out, the input is never mutated, unchanged parts are shared.

    `requires` and `ensures` name properties (see passes.properties), checked before and after.
    """

    name: ClassVar[str] = ""
    level: ClassVar[str] = "graph"  # of the input: "graph" or "loop"
    verb: ClassVar[str] = "rewrote"  # for the sentence: "cse merged 2 of 31 nodes"
    requires: ClassVar[tuple[str, ...]] = ()
    ensures: ClassVar[tuple[str, ...]] = ()

    def run(self, ir: Any) -> Any:
        """The new IR. Raises CompileError when the user has to act."""
        raise NotImplementedError(f"pass {type(self).__name__} has no `run`")

    def summary(self, before: Any, after: Any, changes: Changes) -> str:
        """One sentence: ``cse merged 2 of 31 nodes: m.py:8, m.py:9``."""
        names = changes.subjects
        if not names:
            return f"{self.name} {unreported(before, after)}"
        if self.level == "graph":
            total, things, which = len(before.nodes), "nodes", changes.where
        else:
            total, things, which = len(before.kernels), "kernels", ", ".join(names[:4])
        sentence = f"{self.name} {self.verb} {len(names)} of {total} {things}"
        return f"{sentence}: {which}" if which else sentence

    @property
    def options(self) -> dict[str, Any]:
        """Option name -> value."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __str__(self) -> str:
        """As in pipeline text: ``fuse{max_inputs=8}``; options at their defaults are left out."""
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return f"{self.name}{{{','.join(changed)}}}" if changed else self.name


def unreported(before: Any, after: Any) -> str:
    """What a pass did that reported no rewrites: passes on loops are told by the kernels they changed."""
    if before is after or not hasattr(after, "kernels"):
        return "changed nothing"
    if not hasattr(before, "kernels"):
        return f"made {len(after.kernels)} kernels, called {len(after.calls)} times"
    changed = [k.name for k in after.kernels if k not in before.kernels]
    if not changed:
        planned = f"planned {after.arena_bytes:,} bytes" if after.arena_bytes else ""
        return planned if before.arena_bytes != after.arena_bytes else "changed nothing"
    names = ", ".join(changed[:4]) + (", ..." if len(changed) > 4 else "")
    return f"changed {len(changed)} of {len(after.kernels)} kernels: {names}"


PASSES: dict[str, type[Pass]] = {}
PLACED: dict[str, list[type[Pass]]] = {}  # pass name -> passes of the user that follow it

P = TypeVar("P", bound=type[Pass])


def register(cls: P, *, after: str = "") -> P:
    """Make a pass known by its name; with `after`, also run it behind that pass in every pipeline.

    A pass of the same name is replaced. CompileError if `cls` has no name or its run is missing.
    """
    if not cls.name or cls.run is Pass.run:
        raise CompileError(
            "MC002",
            f"{cls.__name__} is not a complete pass",
            remedy="Give the class an attribute `name` and a method `run(self, ir)`.",
        )
    if after and after not in PASSES:
        raise unknown_name("pass", after, sorted(PASSES))
    unplace(cls.name)
    PASSES[cls.name] = cls
    if after:
        PLACED.setdefault(after, []).append(cls)
    return cls


def unregister(name: str) -> None:
    """Forget a pass. CompileError if there is none of this name."""
    if name not in PASSES:
        raise unknown_name("pass", name, sorted(PASSES))
    del PASSES[name]
    unplace(name)


def unplace(name: str) -> None:
    for placed in PLACED.values():
        placed[:] = [cls for cls in placed if cls.name != name]


def with_placed(pipeline: Iterable[Pass]) -> tuple[Pass, ...]:
    """The pipeline with the user's passes at their places, unless they are in it already."""
    steps = tuple(pipeline)
    have = {p.name for p in steps}
    out: list[Pass] = []

    def add(p: Pass) -> None:
        out.append(p)
        for cls in PLACED.get(p.name, ()):
            if cls.name not in have:
                have.add(cls.name)
                add(cls())

    for p in steps:
        add(p)
    return tuple(out)
