"""torch.compile(..., backend="minicompile"): graph pieces come through the same capture, with their lines."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minicompile.capture import Captured, Functionalize, ParameterReader, dynamo
from tests.capture.harness import interpret


class Interpreted:
    """Stands for the rest of the compiler: runs the pure graph with PyTorch."""

    seen: list[Captured] = []

    def __init__(self, captured: Captured, options: Any) -> None:
        self.graph = Functionalize().run(captured.graph)
        self.seen.append(captured)

    def run(self, inputs: list[Tensor], reader: ParameterReader) -> list[Tensor]:
        return interpret(self.graph, [*inputs, *reader.tensors()])


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Captured]]:
    compiler = importlib.import_module("minicompile.compile")
    monkeypatch.setattr(compiler, "compile_captured", Interpreted)
    monkeypatch.setattr(Interpreted, "seen", [])
    torch._dynamo.reset()
    with torch.no_grad():
        yield Interpreted.seen
    torch._dynamo.reset()


class Net(nn.Module):
    b: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.register_buffer("b", torch.ones(8))
        self.blocks = nn.Sequential(nn.Linear(8, 8), nn.ReLU())

    def forward(self, x: Tensor, scale: float) -> Any:
        h = F.gelu(self.fc(x)) * scale
        if h.sum() > 0:
            h = h + self.b
        return self.blocks(h).view(x.shape[0], 2, 4), x


def test_pieces_around_an_if(interpreted: list[Captured]) -> None:
    model, x = Net().eval(), torch.randn(3, 8)
    for y in (x, -x):
        got, same = torch.compile(model, backend="minicompile")(y, 2.0)
        torch.testing.assert_close(got, model(y, 2.0)[0])
        assert same is y
    first = interpreted[0].graph
    assert sorted(v.name for v in first.inputs) == ["fc_bias", "fc_weight", "x"]
    locs = [n.origins[0].loc for n in first.nodes]
    assert all(loc.file == __file__ and loc.line for loc in locs)
    assert (locs[0].module, locs[0].call, locs[0].function) == ("fc", "linear", "forward")
    modules = [n.origins[0].loc.module for n in interpreted[1].graph.nodes]
    assert modules == ["", "blocks.0", "blocks.1", ""]


def test_other_shapes(interpreted: list[Captured]) -> None:
    f = torch.compile(lambda x: x.reshape(-1) * x.shape[0], backend="minicompile")
    for n in (2, 3, 4, 3):
        torch.testing.assert_close(f(torch.ones(n, 5)), torch.ones(5 * n) * n)
    shapes = [c.graph.inputs[0].type.shape for c in interpreted]
    assert len(shapes) == len(set(shapes)) == 3


def test_mutation(interpreted: list[Captured]) -> None:
    def f(x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2

    x = torch.ones(3)
    out = torch.compile(f, backend="minicompile")(x)
    assert x.tolist() == [2, 2, 2] and out.tolist() == [4, 4, 4]


def test_gradients_are_not_lost(interpreted: list[Captured]) -> None:
    model, x = nn.Linear(4, 4), torch.randn(2, 4)
    with torch.enable_grad(), pytest.warns(UserWarning, match="gradients"):
        torch.compile(model, backend="minicompile")(x).sum().backward()
    assert model.weight.grad is not None and not interpreted


def test_options_are_checked() -> None:
    with pytest.raises(Exception, match="MC001"):
        torch.compile(lambda x: x + 1, backend="minicompile", options={"nonsense": 1})(
            torch.ones(2)
        )


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("L_x_", "x"),
        ("L_self_modules_fc_parameters_weight_", "fc_weight"),
        ("L_self_modules_layers_modules_0_buffers_mean_", "layers_0_mean"),
        ("s77", "s77"),
    ],
)
def test_lifted_names(target: str, name: str) -> None:
    assert dynamo.lifted_name(target) == name
