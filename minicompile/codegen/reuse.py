"""Values that a loop body uses again get a name: loads, and the element numbers of loads.

A body is printed twice: a first round counts, the second round knows what is worth a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from minicompile.codegen.addresses import join, scalar_text
from minicompile.codegen.source import CodeWriter, Namespace, Text
from minicompile.ir.index import Index, variables
from minicompile.ir.location import Origin

NOTHING: frozenset[str] = frozenset()
Names = set[str] | frozenset[str]


@dataclass
class Cached:
    """A value that has a name: valid until its buffer is written or a name in its index changes."""

    name: Text
    buf: str
    names: set[str]


@dataclass
class Reuse:
    """The named values of the body being printed. `origins` are those of the current statement."""

    writer: CodeWriter
    names: Namespace
    cache: dict[Hashable, Cached] = field(default_factory=dict)
    uses: Counter[Hashable] = field(default_factory=Counter)
    counting: bool = False
    origins: tuple[Origin, ...] = ()

    def place(self, offset: Index) -> str:
        """A scalar element number as text; a sum of products that is used again gets a name."""
        base = Index(offset.terms)
        if sum(1 + (c != 1) for _, c in base.terms) < 2:
            return scalar_text(offset)
        if base not in self.cache:
            if not self.again(base):
                return scalar_text(offset)
            self.named(base, Text(scalar_text(base)), "at", "", variables(base))
        return join([self.cache[base].name.text], offset.const)

    def again(self, key: Hashable) -> bool:
        """Counts in the first round; says in the second whether the body uses `key` more than once."""
        self.uses[key] += self.counting
        return not self.counting and self.uses[key] > 1

    def named(self, key: Hashable, t: Text, name: str, buf: str, names: set[str]) -> Text:
        """Give a value a name, on a line of its own; later uses of `key` are that name."""
        named = Text(self.names.fresh(name), t.vector)
        self.emit(f"{named.text} = {t.text}")
        self.cache[key] = Cached(named, buf, names)
        return named

    def emit(self, text: str) -> None:
        """A line before the one being printed."""
        self.writer.line(text, self.origins, "a value that is used again")

    def forget(self, bufs: Names = NOTHING, names: Names = NOTHING) -> None:
        """Buffers were written, or names bound anew: values that depend on them lose their names."""
        self.cache = {
            k: c for k, c in self.cache.items() if c.buf not in bufs and not c.names & names
        }
