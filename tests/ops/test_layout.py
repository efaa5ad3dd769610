"""How each layout reads its operands (`read`) is what it means (`meaning`), index by index."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minicompile.ir.index import Index, Quotient, divide, ix
from minicompile.ir.types import TensorType, i64
from minicompile.ops.registry import PRIMITIVES, Kind


def value(index: Index, env: dict[str, int]) -> int:
    """The number that an index stands for."""
    total = index.const
    for atom, c in index.terms:
        if isinstance(atom, Quotient):
            inner = value(atom.index, env)
            total += c * (inner % atom.by if atom.mod else inner // atom.by)
        else:
            total += c * env[atom]
    return total


def check(op: str, *shapes: tuple[int, ...], **attrs: Any) -> None:
    """Every element of the result, found through `read`, is the one that `meaning` gives."""
    xs = [torch.arange(math.prod(s)).reshape(s) + 1000 * (k + 1) for k, s in enumerate(shapes)]
    types = [TensorType(i64, s) for s in shapes]
    entry = PRIMITIVES[op]
    want = entry.meaning(*xs, **attrs)
    assert entry.infer(*types, **attrs).dims == tuple(want.shape)
    names = [f"i{d}" for d in range(want.dim())]
    assert entry.read is not None
    read = entry.read(types, attrs, tuple(map(ix, names)), dict(zip(names, want.shape)))
    for place in itertools.product(*map(range, want.shape)):
        env = dict(zip(names, place))
        got = read.other
        for arm in read.arms:
            if all(lo <= value(i, env) < hi for lo, i, hi in arm.conds):
                got = int(xs[arm.operand][tuple(value(i, env) for i in arm.index)])
                break
        assert got == int(want[place]), f"{op} {attrs} at {place}"


CASES: list[tuple[str, tuple[tuple[int, ...], ...], dict[str, Any]]] = [
    ("broadcast", ((3, 1),), dict(shape=(2, 3, 4), dims=(1, 2))),
    ("broadcast", ((3, 2),), dict(shape=(2, 5, 3), dims=(2, 0))),
    ("broadcast", ((),), dict(shape=(2,), dims=())),
    ("permute", ((2, 3, 4),), dict(dims=(2, 0, 1))),
    ("slice", ((5, 6),), dict(starts=(1, 0), stops=(5, 6), steps=(3, 1))),
    ("slice", ((5,),), dict(starts=(2,), stops=(2,), steps=(1,))),
    ("pad", ((2, 3),), dict(low=(1, 0), high=(0, 2), value=7)),
    ("pad", ((0, 3),), dict(low=(1, 0), high=(1, 0), value=7)),
    ("flip", ((2, 3, 4),), dict(dims=(0, 2))),
    ("window", ((2, 7),), dict(dims=(1,), sizes=(3,), strides=(2,), dilations=(1,))),
    ("window", ((6, 7),), dict(dims=(0, 1), sizes=(2, 3), strides=(2, 1), dilations=(3, 2))),
    ("concat", ((2, 3), (2, 1), (2, 2)), dict(dim=1)),
    ("concat", ((2, 3), (1, 3)), dict(dim=0)),
    ("concat", ((0, 3), (1, 3)), dict(dim=0)),
]


@pytest.mark.parametrize(("op", "shapes", "attrs"), CASES)
def test_reads(op: str, shapes: tuple[tuple[int, ...], ...], attrs: dict[str, Any]) -> None:
    check(op, *shapes, **attrs)


def test_every_layout_is_tried() -> None:
    layouts = {name for name, p in PRIMITIVES.items() if p.kind is Kind.LAYOUT}
    assert layouts == {op for op, _, _ in CASES} | {"reshape"}


@st.composite
def factorings(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes with the same number of elements, ones included."""
    primes = draw(st.lists(st.sampled_from([1, 2, 2, 3, 5]), max_size=5))

    def shape(order: list[int]) -> tuple[int, ...]:
        sizes = [1]
        for p in order:
            if draw(st.booleans()):
                sizes.append(p)
            else:
                sizes[-1] *= p
        return tuple(sizes if draw(st.booleans()) else sizes[1:] if sizes[0] == 1 else sizes)

    return shape(primes), shape(draw(st.permutations(primes)))


@given(factorings())
@settings(max_examples=200, deadline=None)
def test_reshape_reads(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    old, new = shapes
    check("reshape", old, shape=new)


@pytest.mark.parametrize(("old", "new"), [((0, 3), (3, 0)), ((2, 0), (0,)), ((0,), (5, 0, 2))])
def test_reshape_of_nothing(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    check("reshape", old, shape=new)


@given(
    st.dictionaries(st.sampled_from("ijk"), st.integers(-30, 30), max_size=3),
    st.integers(-20, 20),
    st.integers(1, 12),
    st.dictionaries(st.sampled_from("ijk"), st.integers(1, 5), min_size=3, max_size=3),
)
@settings(max_examples=300, deadline=None)
def test_divide_is_floor_division(
    coefs: dict[str, int], const: int, by: int, extents: dict[str, int]
) -> None:
    """(a // by, a % by) for every value of the variables, however the terms are split."""
    a = Index(tuple((v, c) for v, c in coefs.items() if c), const)
    quotient, rest = divide(a, by, extents)
    for place in itertools.product(*(range(n) for n in extents.values())):
        env = dict(zip(extents, place))
        assert divmod(value(a, env), by) == (value(quotient, env), value(rest, env))


def test_diagonals_are_affine() -> None:
    """The flat positions 5*i + 1 of a plane with rows of 4 are (i, i + 1): no division is left."""
    row, column = divide(ix(("i", 5), const=1), 4, {"i": 3})
    assert (row, column) == (ix("i"), ix("i", const=1))


def test_layouts_refuse_what_does_not_fit() -> None:
    x = TensorType(i64, (2, 3))
    for op, attrs in (
        ("broadcast", dict(shape=(4, 3), dims=(0, 1))),
        ("permute", dict(dims=(0, 0))),
        ("reshape", dict(shape=(4, 2))),
        ("slice", dict(starts=(0, 0), stops=(3, 3), steps=(1, 1))),
        ("pad", dict(low=(-1, 0), high=(0, 0), value=0)),
        ("flip", dict(dims=(2,))),
        ("window", dict(dims=(0,), sizes=(3,), strides=(1,), dilations=(1,))),
    ):
        with pytest.raises(TypeError):
            PRIMITIVES[op].infer(x, **attrs)
