"""Targets: zoo names, files and expressions; mistakes are told in the user's words."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from minicompile.errors import CompileError
from minicompile.tools.target import evaluate_inputs, resolve

FILE = """
import torch
from torch import nn

inputs = (torch.ones(2, 3),)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
    def forward(self, x):
        return self.fc(x).relu()

class Needs(nn.Module):
    def __init__(self, size):
        super().__init__()

made = Net()
number = 3

def double(x):
    return x * 2

def broken(x):
    return x @ torch.ones(7, 7)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(FILE)
    return str(path)


@pytest.mark.parametrize(("name", "shape"), [("Net", (2, 4)), ("made", (2, 4)), ("double", (2, 3))])
def test_file(file: str, name: str, shape: tuple[int, ...]) -> None:
    target = resolve(f"{file}:{name}")
    assert target.name == name
    assert tuple(target.model(*target.inputs).shape) == shape


def test_inputs_on_the_command_line_win(file: str) -> None:
    assert resolve(f"{file}:double", inputs="torch.zeros(5)").inputs[0].shape == (5,)


def test_the_only_callable_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("import torch\ninputs = torch.ones(3)\ndef f(x):\n    return x + 1\n")
    assert resolve(str(path)).name == "f"


def test_expression() -> None:
    target = resolve(None, "nn.RMSNorm(64)(torch.randn(8, 64))")
    assert target.name == "nn.RMSNorm(64)" and target.inputs[0].shape == (8, 64)


def test_expression_with_keywords() -> None:
    target = resolve(None, "F.softmax(torch.ones(2, 4), dim=-1)")
    assert torch.equal(target.model(*target.inputs), torch.full((2, 4), 0.25))


def test_two_runs_see_the_same_numbers() -> None:
    a, b = (resolve(None, "torch.relu(torch.randn(8))").inputs[0] for _ in range(2))
    assert torch.equal(a, b)


def test_inputs_text() -> None:
    assert [type(x) for x in evaluate_inputs("torch.ones(2), 3")] == [torch.Tensor, int]


MISTAKES = [
    ("FILE:nothing", None, "unknown name in .*\n.*:Net, .*:made, .*:double"),
    ("FILE:number", None, "number is not callable: it is a int"),
    ("FILE:Needs", None, "cannot be made without arguments"),
    ("FILE:broken", None, r"broken itself fails(.|\n)*models\.py:\d+: return x @ torch"),
    ("missing.py:f", None, "there is no file missing.py"),
    (None, None, "needs one TARGET"),
    ("mlp", "F.gelu(torch.ones(3))", "needs one TARGET"),
    (None, "torch.ones(", "is not a Python expression"),
    (None, "torch", "is not a call"),
    (None, "F.gelu(torch.oness(3))", "fails: AttributeError"),
    (None, "F.gelu(*[torch.ones(3)])", r"\* and \*\*"),
    (None, "nn.Linear(3, 4)(torch.ones(2, 2))", "itself fails, without being compiled"),
    (None, "nn.Linear(3, 4)()", "--inputs"),
]


@pytest.mark.parametrize(("name", "expression", "said"), MISTAKES)
def test_mistakes(file: str, name: str | None, expression: str | None, said: str) -> None:
    name = name.replace("FILE", file) if name else None
    with pytest.raises(CompileError, match=said):
        resolve(name, expression)


def test_a_file_that_does_not_load(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("import torch\nx = undefined\n")
    with pytest.raises(
        CompileError, match=r"does not load: NameError(.|\n)*bad\.py:2: x = undefined"
    ):
        resolve(f"{path}:x")
