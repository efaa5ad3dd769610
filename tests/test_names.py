"""No name of a user clashes with a name of ours, and no primitive with a word of generated code."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

import minicompile as mc
from minicompile.codegen import prelude
from minicompile.ir.words import RESERVED
from minicompile.ops.registry import PRIMITIVES


def test_the_vocabulary_of_generated_code_is_reserved() -> None:
    words = {*prelude.NAMES, *(n for n, f in vars(prelude).items() if inspect.isfunction(f))}
    words = {w for w in words if not w.startswith("_")}
    assert words - RESERVED - PRIMITIVES.keys() <= {"vector_function", "is_real", "together"}


HOSTILE = (
    "load store",
    "inputs params",
    "i0 r0",
    "table memory",
    "x t0",
    "k0 t1_acc",
    "exp add",
    "lo hi",
)


@pytest.mark.parametrize("pair", HOSTILE)
def test_arguments_with_names_of_ours(pair: str) -> None:
    a, b = pair.split()
    scope: dict[str, object] = {"torch": torch}
    body = f"return torch.softmax({a}, -1) @ {b}, {a}.sum(), {b} + 1"
    exec(f"def forward({a}, {b}):\n    {body}", scope)
    model = scope["forward"]
    x, y = torch.randn(3, 4), torch.randn(4, 5)
    for got, want in zip(mc.compile(model)(x, y), model(x, y), strict=True):  # type: ignore[operator, arg-type]
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("name", ["Forward", "Exp", "Take", "K0", "Table"])
def test_models_with_names_of_ours(name: str) -> None:
    model = type(name, (nn.Sequential,), {})(nn.Linear(4, 3), nn.Tanh())
    x = torch.randn(2, 4)
    with torch.no_grad():
        torch.testing.assert_close(mc.compile(model)(x), model(x))
