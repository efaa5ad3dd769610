"""tile: register tiles for contractions (matrix products, convolutions, attention scores)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from minicompile.errors import CompileError
from minicompile.ir.loop import For, Kernel, Program
from minicompile.lower.analysis import find, loops_of
from minicompile.lower.contraction import Choice, choices, recognize
from minicompile.lower.tile_gemm import tile_dot, tile_rows
from minicompile.lower.transforms import distinct, drop_unit, sink
from minicompile.passes.base import Pass


@dataclass(frozen=True)
class Tile(Pass):
    """Contractions compute a block of results at once, so that loads are shared between them.

    before:  for i in serial(512): for j in serial(512):
                 acc = 0.0
                 for k in serial(512): acc += x[i, k] * w[j, k]
                 y[i, j] = acc
    after:   for jo in serial(16):
                 w_panel: f32[512, 2, 16] @ local                  (filled from w, transposed)
                 for io in serial(40, step=13, last=499):
                     acc: f32[13, 2, 16] @ register
                     ...
                     for k in serial(512): for ir in unroll(13): for ju in unroll(2): for jv in vector(16):
                         acc[ir, ju, jv] += x[io + ir, k] * w_panel[k, ju, jv]

    A plain product reads two numbers for each multiply-add; a 14 x 32 tile reads 14 + 2 registers for 28
    vector multiply-adds.  Which loop becomes lanes and which rows is the cheapest `Choice`.
    """

    name = "tile"
    level = "loop"
    verb = "tiled"

    def run(self, program: Program) -> Program:
        return replace(program, kernels=tuple(tile(k)[0] for k in program.kernels))


def tile(k: Kernel) -> tuple[Kernel, list[Choice]]:
    """One kernel, and what was chosen for each of its contractions."""
    start = k
    k = distinct(k)
    made: list[Choice] = []
    for root in list(nests(k)):
        if root not in {x.var for x in loops_of(k)}:
            continue
        sunk = sink(k, root)
        c = recognize(sunk, root)
        for choice in choices(c) if c is not None else []:
            try:
                schedule = tile_rows if choice.how == "rows" else tile_dot
                k = schedule(sunk, c, choice)  # type: ignore[arg-type]
                made.append(choice)
                break
            except CompileError:  # a transform's legality check: the next cheapest choice, then
                continue
    return (drop_unit(k), made) if made else (start, made)


def nests(k: Kernel) -> Iterator[str]:
    """Loops at which a contraction may start, outermost first."""
    for x in loops_of(k):
        yield x.var


__all__ = ["For", "Tile", "find", "nests", "tile"]
