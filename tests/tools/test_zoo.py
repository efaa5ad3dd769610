"""The zoo: shapes, determinism, and that nobody's random numbers are disturbed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from minicompile.errors import CompileError
from minicompile.tools import zoo

SHAPES = {
    "mlp": (32, 10),
    "lenet": (4, 10),
    "resnet": (1, 10),
    "gpt": (1, 64, 256),
    "bert": (2, 2),
    "vit": (1, 10),
    "llama": (1, 32, 256),
    "lstm": (4, 10),
    "unet": (1, 4, 32, 32),
    "mixer": (1, 10),
}


def test_names() -> None:
    assert zoo.names() == list(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_model(name: str) -> None:
    module, inputs = zoo.make(name)
    assert not module.training and not any(p.requires_grad for p in module.parameters())
    y = module(*inputs)
    assert tuple(y.shape) == SHAPES[name]
    assert y.isfinite().all() and y.std() > 1e-3
    assert zoo.describe(name).endswith(".")


@pytest.mark.parametrize("name", ["mlp", "lenet", "llama"])
def test_same_weights_every_time(name: str) -> None:
    (a, x), (b, z) = zoo.make(name), zoo.make(name)
    assert torch.equal(x[0], z[0])
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_the_callers_random_numbers_are_left_alone() -> None:
    torch.manual_seed(1)
    want = torch.randn(3)
    torch.manual_seed(1)
    zoo.make("mlp")
    assert torch.equal(torch.randn(3), want)


def test_options() -> None:
    deep, inputs = zoo.make("gpt", layers=6, steps=8)
    assert len(deep.blocks) == 6  # type: ignore[arg-type]
    assert deep(*inputs).shape == (1, 8, 256)


def test_no_parameter_is_at_its_neutral_value() -> None:
    module, _ = zoo.make("lenet")
    for m in module.modules():
        if isinstance(m, nn.BatchNorm2d):
            assert m.running_mean is not None and m.running_mean.abs().min() > 0
            assert m.weight.std() > 0


def test_padding_matters() -> None:
    module, (ids,) = zoo.make("bert")
    unpadded = ids.clone()
    unpadded[1, 20] = 7
    assert not torch.allclose(module(ids)[1], module(unpadded)[1])


def test_unknown_name() -> None:
    with pytest.raises(CompileError, match="did you mean 'gpt'"):
        zoo.make("gptt")
