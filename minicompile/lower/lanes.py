"""How an axis becomes 16 lanes: a map, a sum, or a transposing copy."""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.ir.loop import For, If, Kernel, Load
from minicompile.ir.walk import walk
from minicompile.lower.analysis import (
    accesses,
    chain,
    find,
    flops,
    repeatable,
    stride,
    strides_of,
)
from minicompile.lower.layouts import stage
from minicompile.lower.machine import LANES
from minicompile.lower.motion import hoist, reorder
from minicompile.lower.registers import registers, rfactor
from minicompile.lower.transforms import cut, fresh, mark, pad_vector, shift, split

HEAVY = 10  # additions: from here on a body hides its own latency


def innermost(k: Kernel, root: str, axis: str) -> tuple[Kernel, str]:
    """Move `axis` to the innermost place of the perfect nest at root; also the new outermost loop."""
    order = [x.var for x in chain(find(k, root))[0]]
    order.append(order.pop(order.index(axis)))
    return reorder(k, order), order[0]


def map_axis(k: Kernel, root: str, axis: str) -> Kernel:
    """16 iterations at once; if the body has loops of its own, the lanes go inside them."""
    across = crossing(k, root, axis)
    if across:
        return transpose(k, root, axis, across)
    k, _ = innermost(k, root, axis)
    body = find(k, axis).body
    leaf = not any(isinstance(s, For) for s in body)
    light = sum(flops(s) for s in body) < HEAVY
    k, made = lanes(hoist(k, axis), axis, 4 if light and not leaf else 1)
    for m in made:
        k = mark_lanes(k, m)
        if not leaf:
            k = registers(k, [v for v in (m.unrolled, m.vector) if v])
    return k


def crossing(k: Kernel, root: str, axis: str) -> str:
    """The loop along which loads that are strided along `axis` are contiguous; "" if a plain map does."""
    strides = strides_of(k)
    loops, body = chain(find(k, root))
    extents = {x.var: x.extent for x in loops}
    if any(isinstance(n, (For, If)) for n in walk(body)) or extents[axis] < LANES:
        return ""
    for a in accesses(body):
        if a.mode == "r" and stride(a.index, strides[a.buf], axis) not in (0, 1):
            for x in loops:
                if x.extent >= LANES and stride(a.index, strides[a.buf], x.var) == 1:
                    return x.var
    return ""


def transpose(k: Kernel, root: str, axis: str, across: str) -> Kernel:
    """A transposing copy goes by blocks of 16 x 16 through a local buffer.

        for jo: for io:
            x_block: f32[16, 16] @ local
            for jp: for ip in vector(16): x_block[jp, ip] = x[jo*16 + jp, io*16 + ip]
            for ir: for jv in vector(16): y[io*16 + ir, jo*16 + jv] = x_block[jv, ir]

    Each cache line of x and y is touched once, whatever their strides; in the block, far is near.
    """
    order = [x.var for x in chain(find(k, root))[0]]
    jo, jv, io, ir = (fresh(k, v) for v in (axis + "o", axis + "v", across + "o", across + "r"))
    k = shift(shift(k, axis, LANES, jo, jv), across, LANES, io, ir)
    k = reorder(k, [*(v for v in order if v not in (axis, across)), jo, io, ir, jv])
    strides = strides_of(k)
    loads = {n for n in walk(find(k, jv).body) if isinstance(n, Load)}
    for load in sorted(loads, key=str):
        if stride(load.index, strides[load.buf], jv) not in (0, 1):
            k = stage(k, load, io, [jv, ir], fresh(k, f"{load.buf}_block"))
    return mark(k, jv, "vector")


def reduce_axis(k: Kernel, root: str, axis: str, ways: int = 4) -> Kernel:
    """A sum of its own for each lane, and for each of up to `ways` registers."""
    k, root = innermost(k, root, axis)
    loop = find(k, axis)
    light = sum(flops(s) for s in loop.body) < HEAVY
    ways = ways if light and loop.extent >= ways * LANES else 1
    k, made = lanes(k, axis, ways)
    first, last = (made[0].top, made[-1].top) if root == axis else (root, root)
    return rfactor(k, first, last, [(m.unrolled, m.vector) for m in made], ways)


@dataclass(frozen=True)
class Made:
    """Loops made by `lanes`: the outermost one, the unrolled one (or ""), the one of 16 lanes."""

    top: str
    unrolled: str
    vector: str


def lanes(k: Kernel, var: str, ways: int) -> tuple[Kernel, list[Made]]:
    """Split a loop by 16 lanes, and before that by `ways` registers; the caller marks the loops.

    What is left over: the last block is shifted back if iterations may run twice. Else it is cut off,
    and done in single vectors, the last of them with fewer lanes.
    """
    loop = find(k, var)
    block = LANES * ways
    if loop.extent < LANES:
        return k, [Made(var, "", var)]
    if loop.extent < block:
        return lanes(k, var, 1)
    if loop.extent % block == 0 or repeatable(loop):
        k, made = _blocks(k, var, ways)
        return k, [made]
    tail = fresh(k, f"{var}_t")
    k = cut(k, var, loop.extent // block * block)
    k, made = _blocks(k, var, ways)
    k, more = lanes(k, tail, 1)
    return k, [made, *more]


def _blocks(k: Kernel, var: str, ways: int) -> tuple[Kernel, Made]:
    o, b, u, v = (fresh(k, var + letter) for letter in "obuv")
    if ways == 1:
        return shift(k, var, LANES, o, v), Made(o, "", v)
    k = split(shift(k, var, LANES * ways, o, b), b, LANES, u, v)
    return k, Made(o, u, v)


def mark_lanes(k: Kernel, m: Made) -> Kernel:
    """The loops of `lanes` become what they are: 16 lanes (or the fewer that are left), and copies."""
    k = pad_vector(k, m.vector)
    return mark(k, m.unrolled, "unroll") if m.unrolled else k
