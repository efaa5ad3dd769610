"""tile: register tiles for contractions (matrix products, convolutions, attention scores)."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.errors import CompileError
from minicompile.ir.loop import Kernel, Program
from minicompile.lower.analysis import loops_of
from minicompile.lower.contraction import Choice, choices
from minicompile.lower.kernels import each_kernel
from minicompile.lower.motion import sink
from minicompile.lower.tile_conv import forms
from minicompile.lower.tile_gemm import tile_dot, tile_rows
from minicompile.lower.transforms import distinct, drop_unit
from minicompile.passes.base import Pass, register


@register
@dataclass(frozen=True)
class Tile(Pass):
    """Contractions compute a block of results at once, so that loads are shared between them.

    before:  for i in serial(512): for j in serial(512):
                 acc = 0.0
                 for k in serial(512): acc += x[i, k] * w[j, k]
                 y[i, j] = acc
    after:   for jo in serial(16):
                 w_panel: f32[512, 2, 16] @ local                  (filled from w, transposed)
                 for io in serial(64):
                     acc: f32[8, 2, 16] @ register
                     ...
                     for k in serial(512): for ir in unroll(8): for ju in unroll(2): for jv in vector(16):
                         acc[ir, ju, jv] += x[io * 8 + ir, k] * w_panel[k, ju, jv]

    A plain product reads two numbers for each multiply-add; an 8 x 32 tile reads 8 + 2 registers for 16
    multiply-adds of 16 lanes.  Which loop becomes lanes and which rows is the cheapest `Choice`.
    """

    name = "tile"
    level = "loop"
    verb = "tiled"

    def run(self, program: Program) -> Program:
        return each_kernel(program, tiled)


def tiled(k: Kernel) -> tuple[Kernel, str]:
    after, made = tile(k)
    return after, "; ".join(map(str, made))


def tile(k: Kernel) -> tuple[Kernel, list[Choice]]:
    """One kernel, and what was chosen for each of its contractions."""
    new, made = distinct(k), list[Choice]()
    for root in [x.var for x in loops_of(new)]:
        if root in {x.var for x in loops_of(new)}:
            new, choice = tile_nest(new, root)
            made += [choice] if choice else []
    return (drop_unit(new), made) if made else (k, made)


def tile_nest(k: Kernel, root: str) -> tuple[Kernel, Choice | None]:
    """The nest at `root` with its cheapest legal schedule; unchanged if it is no contraction."""
    ways = [(f, choice) for f in forms(sink(k, root), root) for choice in choices(f.contraction)]
    for form, choice in sorted(ways, key=lambda way: way[0].cycles + way[1].price):
        try:
            return SCHEDULES[choice.how](form.kernel, form.contraction, choice), choice
        except CompileError:  # a transform's legality check: the next cheapest way, then
            continue
    return k, None


SCHEDULES = {"rows": tile_rows, "dot": tile_dot}
