"""Random loop nests: the interpreter, which runs many iterations at once, against one step at a time.

Also the analyses behind it, against brute force: ranges of indices and independence of iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minicompile.ops  # noqa: F401  (fills the op table)
from minicompile.ir import interpret_loop
from minicompile.ir.index import Index, Quotient
from minicompile.ir.interpret import run_kernel
from minicompile.ir.loop import (
    Accumulate,
    Alloc,
    Bind,
    Call,
    Const,
    Expr,
    For,
    If,
    IndexValue,
    Kernel,
    Load,
    Name,
    Param,
    Stmt,
    Store,
)
from minicompile.ir.ranges import Accesses, conflict, interval, opposite
from minicompile.ir.types import TensorType, i64
from minicompile.ir.walk import walk

SIZE = 12
BUFFERS = {"x": (SIZE, SIZE), "y": (SIZE, SIZE), "z": (SIZE,), "s": ()}
OPS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "maximum": max,
    "max": max, "min": min,
}  # fmt: skip


# ---------------------------------------------------------------------------------- one at a time


def value_of(index: Index, env: dict[str, int]) -> int:
    total = index.const
    for atom, c in index.terms:
        if isinstance(atom, Quotient):
            inner = value_of(atom.index, env)
            total += c * (inner % atom.by if atom.mod else inner // atom.by)
        else:
            total += c * env[atom]
    return total


def wrapped(n: int) -> int:
    """As 64 bits."""
    return (n + 2**63) % 2**64 - 2**63


class Scalar:
    """A kernel over i64, executed one iteration after the other."""

    def __init__(self, memory: dict[str, torch.Tensor]) -> None:
        self.memory, self.env = memory, dict[str, int]()

    def at(self, index: tuple[Index, ...]) -> tuple[int, ...]:
        return tuple(value_of(i, self.env) for i in index)

    def expr(self, e: Expr) -> int:
        match e:
            case Const(value):
                return int(value)
            case Name(name):
                return self.env[name]
            case Load(buf, index):
                return int(self.memory[buf][self.at(index)])
            case IndexValue(index):
                return value_of(index, self.env)
            case If(conds, then, other):
                holds = all(lo <= value_of(i, self.env) < hi for lo, i, hi in conds)
                return self.expr(then if holds else other)
            case Call(op, (a, b)):
                return wrapped(OPS[op](self.expr(a), self.expr(b)))
        raise AssertionError(e)

    def run(self, stmts: tuple[Stmt, ...]) -> None:
        for s in stmts:
            match s:
                case For():
                    for i in range(s.extent if s.active is None else s.active):
                        last = i * s.step if s.last is None else s.last
                        self.env[s.var] = min(i * s.step, last)
                        self.run(s.body)
                case Alloc(buf, type):
                    self.memory[buf] = torch.zeros(type.dims, dtype=torch.int64)
                case Bind(name, value):
                    self.env[name] = self.expr(value)
                case Store(buf, index, value):
                    self.memory[buf][self.at(index)] = self.expr(value)
                case Accumulate(buf, index, value, op):
                    old = int(self.memory[buf][self.at(index)])
                    self.memory[buf][self.at(index)] = wrapped(OPS[op](old, self.expr(value)))


# ---------------------------------------------------------------------------------- random nests


@st.composite
def indices(draw: st.DrawFn, variables: tuple[str, ...]) -> Index:
    """An index that stays inside 0 ... SIZE-1 for variables below 4."""
    if not variables:
        return Index((), draw(st.integers(0, SIZE - 1)))
    a, b = draw(st.sampled_from(variables)), draw(st.sampled_from(variables))
    return draw(
        st.sampled_from([
            Index(((a, 1),)), Index(((a, 1),), 2), Index(((a, 2),)), Index(((a, 2), (b, 1))),
            Index(((a, 1), (b, 1)), 1), Index(((a, -1),), 3), Index(((a, 2), (b, -1)), 3),
            Index((), 5), Index(((Quotient(Index(((a, 2), (b, 3))), 4), 2),)),
            Index(((Quotient(Index(((a, 1), (b, 2))), 3, True), 3),), 1),
        ])
    )  # fmt: skip


@st.composite
def expressions(draw: st.DrawFn, variables: tuple[str, ...], buffers: Any, depth: int = 2) -> Expr:
    kind = draw(
        st.sampled_from(["load", "load", "index", "const", "call", "if"] if depth else ["load"])
    )
    if kind == "load":
        buf = draw(st.sampled_from(sorted(buffers)))
        return Load(buf, tuple(draw(indices(variables)) for _ in buffers[buf]), i64)
    if kind == "index":
        return IndexValue(draw(indices(variables)))
    if kind == "const":
        return Const(draw(st.integers(-9, 9)), i64)
    a, b = (draw(expressions(variables, buffers, depth - 1)) for _ in range(2))
    if kind == "call":
        return Call(draw(st.sampled_from(["add", "sub", "maximum"])), (a, b), i64)
    return If(((1, draw(indices(variables)), draw(st.integers(1, 9))),), a, b)


@st.composite
def blocks(
    draw: st.DrawFn, variables: tuple[str, ...], buffers: Any, depth: int
) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    buffers = dict(buffers)
    for number in range(draw(st.integers(1, 3))):
        kind = draw(
            st.sampled_from(
                ["for", "for", "store", "accumulate", "alloc"] if depth else ["store", "accumulate"]
            )
        )
        buf = draw(st.sampled_from([b for b in sorted(buffers) if b != "x"]))
        index = tuple(draw(indices(variables)) for _ in buffers[buf])
        value = draw(expressions(variables, buffers))
        if kind == "for":
            var = f"i{len(variables)}_{number}"
            shape = draw(st.sampled_from([(4, 1, None), (3, 1, None), (2, 2, 1), (3, 1, 1)]))
            body = draw(blocks((*variables, var), buffers, depth - 1))
            made.append(For(var, shape[0], "serial", body, step=shape[1], last=shape[2]))
        elif kind == "store":
            made.append(Store(buf, index, value))
        elif kind == "accumulate":
            made.append(Accumulate(buf, index, value, draw(st.sampled_from(["add", "max", "min"]))))
        else:
            name = f"e{len(variables)}_{number}"
            buffers[name] = (SIZE,)
            clear = Store(name, (Index(((f"{name}c", 1),)),), value)
            made += [
                Alloc(name, TensorType(i64, (SIZE,)), "local"),
                For(f"{name}c", SIZE, "serial", (clear,)),
            ]
    return tuple(made)


@pytest.mark.parametrize("limit", [4, 64, 1 << 20])
@settings(max_examples=150, deadline=None)
@given(body=blocks((), BUFFERS, 3), seed=st.integers(0, 99))
def test_many_iterations_at_once_are_one_after_the_other(
    limit: int, body: tuple[Stmt, ...], seed: int
) -> None:
    params = tuple(Param(name, TensorType(i64, shape)) for name, shape in BUFFERS.items())
    generator = torch.Generator().manual_seed(seed)
    start = {n: torch.randint(-9, 9, shape, generator=generator) for n, shape in BUFFERS.items()}
    slow, fast = ({n: t.clone() for n, t in start.items()} for _ in range(2))
    Scalar(slow).run(body)
    before, interpret_loop.LIMIT = interpret_loop.LIMIT, limit
    try:
        run_kernel(Kernel("k", params, 3, body), fast)
    finally:
        interpret_loop.LIMIT = before
    for name in BUFFERS:
        assert torch.equal(slow[name], fast[name]), name


# ---------------------------------------------------------------------------------- analyses

NAMES = ("i", "j", "k")
terms = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(-3, 3)), max_size=3, unique_by=lambda t: t[0]
)
affine = st.builds(lambda t, c: Index(tuple(t), c), terms, st.integers(-4, 4))
quotient = st.builds(
    lambda a, by, mod, b, c: Index(((Quotient(a, by, mod), c), *b.terms), b.const),
    affine, st.integers(1, 5), st.booleans(), affine, st.integers(-2, 2),
)  # fmt: skip
points = list(product(range(4), range(3), range(2)))
RANGES = {"i": (0, 3), "j": (0, 2), "k": (0, 1)}


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(affine, quotient),
    st.one_of(affine, quotient),
    st.integers(-4, 4),
    st.integers(0, 6),
    st.booleans(),
)
def test_ranges_contain_every_value(
    index: Index, form: Index, lo: int, size: int, holds: bool
) -> None:
    fact = (lo, form, lo + size)
    facts = [fact] if holds else opposite([fact], RANGES)
    span = interval(index, RANGES, facts)
    assert span is not None
    for point in points:
        env = dict(zip(NAMES, point))
        if (lo <= value_of(form, env) < lo + size) == holds:
            assert span[0] <= value_of(index, env) <= span[1]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.one_of(affine, quotient), affine), min_size=1, max_size=3),
    st.integers(1, 3), st.booleans(),
)  # fmt: skip
def test_independent_iterations_never_meet(
    elements: list[tuple[Index, Index]], step: int, reads: bool
) -> None:
    """The loop over i runs 4 times, j is a loop inside, k one outside."""
    loop = For("i", 4, "serial", (), step=step)
    at = Accesses(stores=elements[:1], loads=elements[1:] if reads else [])
    at.stores += [] if reads else elements[1:]
    if conflict(loop, at, {"j": (0, 2)}):
        return
    for k in range(2):
        touched: dict[tuple[int, ...], set[int]] = {}
        for i, j, element in product(range(4), range(3), elements):
            env = {"i": i * step, "j": j, "k": k}
            touched.setdefault(tuple(value_of(x, env) for x in element), set()).add(i)
        assert all(len(iterations) == 1 for iterations in touched.values())


def test_walk_sees_every_statement() -> None:
    body = (For("i", 2, "serial", (Store("z", (Index(),), Const(1, i64)),)),)
    assert sum(isinstance(n, Store) for n in walk(body)) == 1
