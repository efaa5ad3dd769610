"""access: how a reader's loops meet the memory of what it reads."""

from __future__ import annotations

import pytest

from minicompile.passes.access import Relation, Step, cut, relate
from tests.passes.harness import graph

CASES = {
    "nothing between": ("f32[4, 6]", [], "same", 1),
    "a reshape": ("f32[4, 6]", ["f32[3, 8] = reshape({}, shape=(3, 8))"], "same", 1),
    "a transposition": ("f32[4, 6]", ["f32[6, 4] = permute({}, dims=(1, 0))"], "moved", 1),
    "there and back": (
        "f32[4, 6]",
        ["f32[6, 4] = permute({}, dims=(1, 0))", "f32[4, 6] = permute({}, dims=(1, 0))"],
        "same", 1,
    ),
    "a flip": ("f32[4]", ["f32[4] = flip({}, dims=(0,))"], "moved", 1),
    "part of it": ("f32[4]", ["f32[2] = slice({}, starts=(1,), stops=(3,), steps=(1,))"], "part", 0.5),
    "one value per row": ("f32[4]", ["f32[4, 6] = broadcast({}, shape=(4, 6), dims=(0,))"], "row", 6),
    "one value for all": ("f32[1]", ["f32[4, 6] = broadcast({}, shape=(4, 6), dims=(0,))"], "row", 24),
    "one value per row, then other axes": (
        "f32[2, 3]",
        [
            "f32[2, 3, 8] = broadcast({}, shape=(2, 3, 8), dims=(0, 1))",
            "f32[2, 6, 4] = reshape({}, shape=(2, 6, 4))",
        ],
        "row", 8,
    ),
    "one value per column": ("f32[6]", ["f32[4, 6] = broadcast({}, shape=(4, 6), dims=(1,))"], "repeated", 4),
    "windows that overlap": (
        "f32[5]", ["f32[4, 2] = window({}, dims=(0,), sizes=(2,), strides=(1,), dilations=(1,))"],
        "repeated", 1.6,
    ),
    "a margin": ("f32[4]", ["f32[6] = pad({}, low=(1,), high=(1,), value=0.0)"], "choose", 1.5),
    "loops that split": (
        "f32[2, 3, 4]",
        ["f32[3, 2, 4] = permute({}, dims=(1, 0, 2))", "f32[6, 4] = reshape({}, shape=(6, 4))"],
        "moved", 1,
    ),
    "loops that do not fit": (
        "f32[4, 6]",
        ["f32[6, 4] = permute({}, dims=(1, 0))", "f32[8, 3] = reshape({}, shape=(8, 3))"],
        "broken", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_relation(name: str) -> None:
    type, lines, kind, factor = CASES[name]
    names = ["x", *(f"t{i}" for i in range(len(lines)))]
    rows = [f"    {n}: {line.format(v)}" for n, v, line in zip(names[1:], names, lines)]
    last = lines[-1].split(" = ")[0] if lines else type
    g = graph("\n".join([f"def f(x: {type}) -> {last}:", *rows, f"    return {names[-1]}"]))
    steps = tuple(Step(n, 0) for n in reversed(g.nodes))
    space = g.outputs[0].value.type.dims
    assert relate(space, g.inputs[0].type.dims, steps) == Relation(kind, factor)


def test_cut() -> None:
    assert cut((4, 6), 6) == ((4,), (6,))
    assert cut((4, 6), 3) == ((4,), (2, 3))
    assert cut((4, 6), 12) == ((2, 2), (6,))
    assert cut((4, 6), 24) == ((4,), (6,))
    assert cut((4, 6), 4) is None
    assert cut((4, 6), 48) is None
