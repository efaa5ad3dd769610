"""A stage: the program after one pass. It prints, draws, runs, counts and compares itself.

compiled.stages["cse"].text              valid Python syntax; ir.text.parse gives the same IR back
compiled.stages["fuse"].render("fuse.svg")
compiled.stages["lower"].run(x)          the reference interpreter on this stage
print(compiled.stages["cse"].diff)       what the pass changed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from minicompile.errors import unknown_name
from minicompile.ir.graph import Graph
from minicompile.ir.loop import ExternCall, For, KernelCall, Program
from minicompile.ir.walk import walk


@dataclass(frozen=True)
class Stage:
    """One stage. `ir` is a Graph, a loop Program or generated source; `note` says what changed.

    `call` runs the stage on the arguments of the model; None for stages that do not run by themselves.
    """

    name: str
    ir: Any
    seconds: float = 0.0
    note: str = ""
    before: Stage | None = None
    call: Callable[..., Any] | None = field(default=None, repr=False, compare=False)

    @property
    def level(self) -> str:
        """graph, loop or source."""
        if isinstance(self.ir, Graph):
            return "graph"
        return "loop" if isinstance(self.ir, Program) else "source"

    @property
    def text(self) -> str:
        """The stage as Python syntax: the same bytes in every run."""
        if self.level == "source":
            return str(self.ir.text)
        from minicompile.ir.text import text

        return text(self.ir)

    def __str__(self) -> str:
        return self.text

    @property
    def dot(self) -> str:
        """The drawing as Graphviz text."""
        from minicompile.view import dot

        return dot(self.ir)

    def render(self, path: str | Path) -> Path:
        """Draw into a file (.svg, .pdf, ...). CompileError MC060 if that fails."""
        from minicompile.view import render

        return Path(render(self.dot, path))

    def _repr_svg_(self) -> str:
        from minicompile.view import svg

        return svg(self.dot)

    @property
    def diff(self) -> Any:
        """What this stage changed against the one before it: printable, with `.dot`."""
        from minicompile.view import diff

        return diff(self.before.ir if self.before else None, self.ir, self.name)

    @property
    def stats(self) -> dict[str, int]:
        """Counts: nodes, kernels, buffers, bytes, loops, lines."""
        return stats(self.ir)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """What the model returns for these arguments, computed by this stage's interpreter."""
        if self.call is None:
            raise unknown_name("runnable stage", self.name, ["any stage up to buffers, and run"])
        return self.call(*args, **kwargs)


def stats(ir: Any) -> dict[str, int]:
    """Counts of what is in an IR."""
    if isinstance(ir, Graph):
        externs = sum(n.is_extern for n in ir.nodes)
        return {"nodes": len(ir.nodes), "aten": externs, "kernels": len(ir.groups)}
    if isinstance(ir, Program):
        return {
            "kernels": len(ir.kernels),
            "calls": sum(isinstance(c, KernelCall) for c in ir.calls),
            "externs": sum(isinstance(c, ExternCall) for c in ir.calls),
            "loops": sum(isinstance(s, For) for k in ir.kernels for s in walk(k.body)),
            "buffers": sum(b.place == "arena" for b in ir.buffers),
            "arena_bytes": ir.arena_bytes,
        }
    return {"lines": len(str(ir.text).splitlines()), "kernels": len(ir.kernels)}


class Stages(Mapping[str, Stage]):
    """The stages of one compile by name, in order. A wrong name lists the valid ones."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = {s.name: s for s in stages}

    def __getitem__(self, name: str) -> Stage:
        if name not in self._stages:
            raise unknown_name("stage", name, list(self._stages))
        return self._stages[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    def __contains__(self, name: object) -> bool:
        return name in self._stages

    def __str__(self) -> str:
        return summary(tuple(self._stages.values()))


def summary(stages: Sequence[Stage]) -> str:
    """One line per stage: name, milliseconds, counts, what changed."""
    rows = []
    for s in stages:
        counts = ", ".join(f"{n} {what}" for what, n in s.stats.items() if n)
        rows.append((s.name, f"{s.seconds * 1e3:.1f} ms", counts, s.note))
    widths = [max(len(r[i]) for r in rows) if rows else 0 for i in range(3)]
    return "\n".join(
        f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:<{widths[2]}}  {d}".rstrip() for a, b, c, d in rows
    )


def max_error(got: Sequence[Any], want: Sequence[Any]) -> float:
    """The largest absolute difference between two lists of tensors; inf where shapes or NaNs differ."""
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        if a.shape != b.shape:
            return float("inf")
        if not a.numel():
            continue
        x, y = a.detach().to(torch.float64), b.detach().to(torch.float64)
        same = (x == y) | (x.isnan() & y.isnan())
        worst = max(
            worst, float(torch.where(same, 0.0, (x - y).abs()).nan_to_num(float("inf")).max())
        )
    return worst
