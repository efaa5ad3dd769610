"""Random small graphs of primitives: what a pass may meet, without any model."""

from __future__ import annotations

import random

from minicompile.ir.graph import Graph, Output, Value
from minicompile.ir.location import Loc, Origin
from minicompile.ir.types import TensorType, bool_, f32, i64
from minicompile.ops import creation as C
from minicompile.ops import elementwise as E
from minicompile.ops import gather as G
from minicompile.ops import layout as L
from minicompile.ops import reduction as R
from minicompile.ops.build import Builder, Handle, broadcast_to

UNARY = (E.neg, E.abs, E.exp, E.sqrt, E.tanh, E.floor)
BINARY = (E.add, E.sub, E.mul, E.div, E.maximum, E.minimum)
LITERALS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.25, 3.0)
REDUCTIONS = (R.reduce_sum, R.reduce_max, R.reduce_min)


def random_graph(seed: int, size: int = 12) -> Graph:
    """About `size` random operations on two inputs; several outputs, often with dead and equal nodes."""
    rng = random.Random(seed)
    inputs = [Value("x", TensorType(f32, (2, 3, 4))), Value("y", TensorType(f32, (4,)))]
    with Builder("t") as b:
        pool = [Handle(v) for v in inputs]
        while len(pool) < size + len(inputs):
            pool.append(step(rng, rng.choice(pool[-6:]), pool))
    nodes = [
        type(n)(n.op, n.args, n.attrs, n.outs, (Origin(Loc("m.py", i + 1), n.out.name),))
        for i, n in enumerate(b.nodes)
    ]
    outs = rng.sample(pool[2:], 3) + [pool[-1]]
    return Graph("f", tuple(inputs), (), tuple(nodes), tuple(Output(h.value) for h in outs))


def step(rng: random.Random, x: Handle, pool: list[Handle]) -> Handle:
    """One more value, mostly computed from x."""
    if x.dtype is not f32:
        return E.cast(x, dtype=f32)
    choice = rng.randrange(10)
    if choice < 2:
        return rng.choice(UNARY)(x)
    if choice < 4:
        return rng.choice(BINARY)(x, fitting(rng, x, pool))
    if choice < 5:
        pair = [x, rng.choice(LITERALS)]
        return rng.choice(BINARY)(*(pair if rng.random() < 0.7 else pair[::-1]))
    if choice < 6 and x.ndim:
        return rng.choice(REDUCTIONS)(
            x, dims=tuple(sorted(rng.sample(range(x.ndim), rng.randint(0, x.ndim))))
        )
    if choice < 7:
        return other(rng, x)
    return layout(rng, x)


def fitting(rng: random.Random, x: Handle, pool: list[Handle]) -> Handle:
    """An operand of the shape of x: an older value, broadcast where it has to be, or x itself."""
    fits = [
        h for h in pool
        if h.dtype is f32 and h.ndim <= x.ndim
        and all(a in (1, b) for a, b in zip(h.shape[::-1], x.shape[::-1]))
    ]  # fmt: skip
    return broadcast_to(rng.choice(fits or [x]), x.shape)


def other(rng: random.Random, x: Handle) -> Handle:
    """Masks, constants, casts, scans, contractions, gathers."""
    choice = rng.randrange(6)
    if choice == 0:
        return E.cast(E.cast(x, dtype=f32), dtype=bool_)
    if choice == 1:
        return x * C.full(shape=x.shape, value=rng.choice(LITERALS), dtype=f32)
    if choice == 2 and x.ndim:
        mask = C.iota(shape=x.shape, dim=rng.randrange(x.ndim)) < 2
        return E.where(mask, x, float("-inf"))
    if choice == 3 and x.ndim:
        return R.scan_max(x, dim=rng.randrange(x.ndim))
    if choice == 4 and x.ndim == 2:
        return G.contract(x, x, spec="ik,jk->ij")
    if choice == 5 and x.ndim and x.shape[0]:
        index = C.full(shape=(2,), value=0, dtype=i64)
        return G.gather(x, index, dims=(0,))
    return E.neg(x)


def layout(rng: random.Random, x: Handle) -> Handle:
    n = x.ndim
    choice = rng.randrange(8)
    if choice == 0:
        return L.permute(x, dims=tuple(rng.sample(range(n), n)))
    if choice == 1:
        return L.reshape(x, shape=random_shape(rng, x.type.numel))
    if choice == 2 and n:
        starts = tuple(rng.randint(0, d // 2) for d in x.shape)
        steps = tuple(rng.randint(1, 2) for _ in x.shape)
        return L.slice_(x, starts=starts, stops=x.shape, steps=steps)
    if choice == 3 and n:
        return L.flip(x, dims=tuple(rng.sample(range(n), rng.randint(0, n))))
    if choice == 4 and n and x.type.numel < 100:
        margins = [tuple(rng.randint(0, 1) for _ in x.shape) for _ in range(2)]
        return L.pad(x, low=margins[0], high=margins[1], value=rng.choice(LITERALS))
    if choice == 5 and n and x.type.numel < 100:
        return L.concat(x, E.neg(x), dim=rng.randrange(n))
    if choice == 6 and n < 4 and x.type.numel < 100:
        shape = (rng.randint(1, 3), *x.shape)
        return L.broadcast(x, shape=shape, dims=tuple(range(1, n + 1)))
    if choice == 7 and n and min(x.shape) >= 2 and x.type.numel < 100:
        return L.window(x, dims=(n - 1,), sizes=(2,), strides=(1,), dilations=(1,))
    return L.reshape(x, shape=(*x.shape, 1))


def random_shape(rng: random.Random, numel: int) -> tuple[int, ...]:
    shape: list[int] = []
    while numel > 1 and len(shape) < 3:
        d = rng.choice([k for k in range(1, numel + 1) if numel % k == 0])
        shape.append(d)
        numel //= d
    return (*shape, numel)
