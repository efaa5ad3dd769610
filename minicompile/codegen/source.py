"""Generated source: lines of text that know where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from minicompile.ir.location import Origin, lines
from minicompile.ir.types import DType, TensorType

WIDTH = 100  # columns of a signature before it is broken up


@dataclass(frozen=True)
class Line:
    """One line of source. `origins`: the user's lines it computes; without any, `why` it is there."""

    text: str
    origins: tuple[Origin, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Check:
    """A bounds check of the source: error number `number` means an index outside of 0 ... size-1."""

    number: int
    size: int
    origins: tuple[Origin, ...]


@dataclass(frozen=True)
class KernelSource:
    """What the host must know of a printed kernel.

    `extra` are the arguments after the buffers, some of "scratch", "error", "lo", "hi";
    `extent` is the number of iterations of the parallel loop that lo and hi divide, or None.
    """

    name: str
    first_line: int
    last_line: int
    extra: tuple[str, ...]
    scratch_bytes: int
    extent: int | None


@dataclass(frozen=True)
class Segment:
    """One host function: the buffers whose addresses are its first arguments."""

    name: str
    buffers: tuple[str, ...]
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Source:
    """A generated module. Line numbers count from 1, as in `lines[n - 1]`."""

    lines: tuple[Line, ...]
    kernels: tuple[KernelSource, ...]
    segments: tuple[Segment, ...]
    checks: tuple[Check, ...]
    scratch_bytes: int

    @property
    def text(self) -> str:
        return "".join(line.text + "\n" for line in self.lines)

    def function_text(self, name: str) -> str:
        """The text of a kernel or a host."""
        functions: tuple[KernelSource | Segment, ...] = (*self.kernels, *self.segments)
        f = next(f for f in functions if f.name == name)
        return "\n".join(line.text for line in self.lines[f.first_line - 1 : f.last_line])


@dataclass
class CodeWriter:
    """Collects lines; `block()` indents. A comment names the user's line where it changes."""

    lines: list[Line] = field(default_factory=list)
    depth: int = 0
    comment: str = ""

    def line(self, text: str, origins: tuple[Origin, ...] = (), why: str = "") -> None:
        place = lines(origins)
        shown = f"  # {place}" if place and place != self.comment else ""
        if place:
            self.comment = place
        indent = "    " * self.depth if text else ""
        self.lines.append(Line(indent + text + shown, origins, why if not origins else ""))

    @contextmanager
    def block(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1
        self.comment = ""

    def signature(self, name: str, params: list[str], why: str) -> None:
        """``def NAME(params):``, on one line where it fits."""
        text = f"def {name}({', '.join(params)}):"
        if len(text) <= WIDTH:
            self.line(text, why=why)
            return
        self.line(f"def {name}(", why=why)
        with self.block():
            for p in params:
                self.line(f"{p},", why=why)
        self.line("):", why=why)


ATOM = 9  # binds more strongly than any operator


@dataclass(frozen=True)
class Text:
    """Source of a value: does it have 16 lanes, and how strongly does its operator bind?"""

    text: str
    vector: bool = False
    binds: int = ATOM

    def inside(self, binding: int) -> str:
        """As an operand of an operator: in parentheses unless it binds more strongly."""
        return self.text if self.binds > binding else f"({self.text})"


class Namespace:
    """Names already in use; `fresh` finds the next free one."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)

    def fresh(self, name: str) -> str:
        """`name` itself if it is free, else name_1, name_2, ..."""
        candidate, n = name, 0
        while candidate in self.taken:
            n += 1
            candidate = f"{name}_{n}"
        self.taken.add(candidate)
        return candidate


def annotation(name: str, type: TensorType) -> str:
    return f"{name}: {type}"


def literal(value: bool | int | float, dtype: DType) -> str:
    """A number as Python source. f32 constants print as the shortest decimal that gives them back."""
    if dtype.kind == "b":
        return str(bool(value))
    if not dtype.is_float:
        return str(int(value))
    return repr(float(value))  # inf and nan are names in generated code, too
