"""Convolutions as matrix products: a block of rows is unfolded into a local buffer (im2col, in the cache).

    y[n, o, h, w] = sum x[n, c, h + p, w + r] * weight[o, c, p, r]

    for n: for ho: columns: f32[C, 3, 3, rows * W] @ local       every window of a block of rows, unfolded
                   for o: for hw in serial(rows * W):            a plain product: o are its rows, hw its lanes
                       acc += columns[c, p, r, hw] * weight[o, c, p, r]

The copy makes full vectors out of short image rows, and reads the weights as they lie in memory. It costs
about 3 instructions for 16 elements, which are then used once for every output channel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from minicompile.errors import CompileError
from minicompile.ir.index import variables
from minicompile.ir.loop import Kernel, Load
from minicompile.lower.analysis import ceil_div, find
from minicompile.lower.contraction import Contraction, recognize, whole
from minicompile.lower.layouts import collapse, stage
from minicompile.lower.machine import LANES, machine
from minicompile.lower.motion import reorder
from minicompile.lower.transforms import fresh, shift

COPY = 4.0  # cycles: one vector of the unfolded image


@dataclass(frozen=True)
class Form:
    """One way to write a contraction: the kernel, its outermost loop, and what the preparation costs."""

    kernel: Kernel
    root: str
    contraction: Contraction
    cycles: float = 0.0


def forms(k: Kernel, root: str) -> list[Form]:
    """The contraction at `root` as it is, with its pixels in one loop, and unfolded; [] if it is none."""
    c = recognize(k, root)
    if c is None:
        return []
    found = [Form(k, root, c)]
    for change in (with_joined_pixels, unfolded):
        try:
            form = change(k, c)
        except CompileError:  # a transform's legality check: not possible here
            continue
        if form is not None:
            found.append(form)
    return found


def with_joined_pixels(k: Kernel, c: Contraction) -> Form | None:
    """The two innermost output loops as one, where memory allows: 1x1 convolutions."""
    if len(c.outer) < 3 or c.outer[-1].extent % LANES == 0:
        return None
    outer, inner = (x.var for x in c.outer[-2:])
    return _form(collapse(k, outer, inner), c.outer[0].var, 0.0)


def unfolded(k: Kernel, c: Contraction) -> Form | None:
    """The operand that windows slide over, copied window by window for a block of rows."""
    windows = [x for x in c.loads if _pixels(x, c)]
    if len(windows) != 1 or len(c.outer) < 3:
        return None
    (load,) = windows
    pixels = _pixels(load, c)[-2:]
    if len(pixels) != 2 or [x.var for x in c.outer[-2:]] != pixels:
        return None
    h, w = pixels
    others = [x.var for x in c.outer[:-2]]
    around = [v for v in others if load in c.varying(v)]
    inside = [v for v in others if v not in around]
    rows = block_of_rows(c.depth, c.extent(h), c.extent(w))
    if not rows or not inside:
        return None
    ho, hr = fresh(k, h + "o"), fresh(k, h + "r")
    k = reorder(shift(k, h, rows, ho, hr), [*around, ho, *inside, hr, w])
    e = whole(find(k, ho), load.buf)
    loops = [*(x.var for x in c.reduction), hr, w]
    k = collapse(stage(k, e, ho, loops, fresh(k, f"{load.buf}_columns")), hr, w)
    blocks = math.prod(c.extent(v) for v in around) * ceil_div(c.extent(h), rows)
    return _form(k, inside[0], blocks * c.depth * rows * ceil_div(c.extent(w), LANES) * COPY)


def _form(k: Kernel, root: str, cycles: float) -> Form | None:
    c = recognize(k, root)
    return None if c is None else Form(k, root, c, cycles)


def _pixels(load: Load, c: Contraction) -> list[str]:
    """Output loops that share an index of the load with a loop of the sum: h in x[c, h + p]."""
    summed = {x.var for x in c.reduction}
    shared = {v for i in load.index if variables(i) & summed for v in variables(i) - summed}
    return [x.var for x in c.outer if x.var in shared]


def block_of_rows(depth: int, height: int, width: int) -> int:
    """How many image rows to unfold at a time: fits half of L2, and wastes the fewest lanes; 0: none fits."""
    fitting = machine().l2 // 2 // (4 * depth * width)
    sizes = {ceil_div(height, n) for n in range(1, height + 1)}
    vectors = {r: ceil_div(height, r) * ceil_div(r * width, LANES) for r in sizes if r <= fitting}
    return min(vectors, key=lambda r: (vectors[r], -r), default=0)
