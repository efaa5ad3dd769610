"""Every node knows its line, columns, function, module path and torch-level call."""

from __future__ import annotations

import inspect

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minicompile.capture import Functionalize, capture
from minicompile.ir.location import Loc


def two_calls(x: Tensor) -> Tensor:
    return torch.exp(x) + torch.sin(x)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.GELU())])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return helper(x)


def helper(x: Tensor) -> Tensor:
    return F.softmax(
        x,
        dim=-1,
    )


def text_of(loc: Loc) -> str:
    """The source that a one-line location points at."""
    with open(loc.file, encoding="utf-8") as f:
        return f.readlines()[loc.line - 1][loc.col : loc.end_col]


def test_columns_tell_calls_on_one_line_apart() -> None:
    nodes = capture(two_calls, (torch.ones(2),)).graph.nodes
    locs = [n.origins[0].loc for n in nodes]
    assert [text_of(loc) for loc in locs] == [
        "torch.exp(x)",
        "torch.sin(x)",
        "torch.exp(x) + torch.sin(x)",
    ]
    first = inspect.getsourcelines(two_calls)[1]
    assert {loc.line for loc in locs} == {first + 1} and locs[0].file == __file__
    assert [loc.call for loc in locs] == ["exp", "sin", "add"]
    assert {loc.function for loc in locs} == {"two_calls"}


def test_modules_and_functions() -> None:
    nodes = capture(Block(), (torch.ones(2, 4),)).graph.nodes
    found = [
        (n.origins[0].loc.module, n.origins[0].loc.function, n.origins[0].loc.call) for n in nodes
    ]
    assert found == [
        ("layers.0", "forward", "linear"),
        ("layers.1.0", "forward", "linear"),
        ("layers.1.1", "forward", "gelu"),
        ("", "helper", "softmax"),
    ]
    assert [text_of(n.origins[0].loc) for n in nodes[:3]] == ["layer(x)"] * 3


def test_a_call_over_several_lines() -> None:
    (node,) = capture(helper, (torch.ones(2, 4),)).graph.nodes
    loc = node.origins[0].loc
    first = inspect.getsourcelines(helper)[1]
    assert (loc.line, loc.end_line) == (first + 1, first + 4)


def test_without_code_of_the_users() -> None:
    (node,) = capture(nn.Linear(4, 4), (torch.ones(2, 4),)).graph.nodes
    assert str(node.origins[0].loc).startswith("linear.py:")
    (node,) = capture(torch.relu, (torch.ones(2),)).graph.nodes
    assert node.origins[0].loc.call == "relu"


def test_origins_survive_functionalize() -> None:
    def f(x: Tensor) -> Tensor:
        x[0].add_(1)
        return x * 2

    graph = Functionalize().run(capture(f, (torch.ones(2, 2),)).graph)
    assert all(n.origins for n in graph.nodes)
    add = next(n for n in graph.nodes if n.op == "aten.add.Tensor")
    assert text_of(add.origins[0].loc) == "x[0].add_(1)" and add.origins[0].value == add.out.name


def test_every_node_has_a_place() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    for node in capture(model.train(), (torch.ones(2, 3, 8),)).graph.nodes:
        assert node.origins and node.origins[0].loc.line > 0
