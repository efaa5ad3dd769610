"""The zoo: ten small models that people know, each with example inputs.

    module, inputs = make("gpt")            # or make("gpt", layers=24)
    module(*inputs)

Every model is in eval mode, needs no gradients, and has the same weights in every process.  Parameters
that PyTorch would initialise to zeros and ones are disturbed, so that a compiler which forgets a bias
or a running mean gets caught.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from minicompile.errors import unknown_name
from minicompile.tools.zoo import convolutional, dense, transformers

Example = tuple[nn.Module, tuple[Tensor, ...]]

_MODELS: dict[str, Callable[..., Example]] = {
    "mlp": dense.mlp,
    "lenet": convolutional.lenet,
    "resnet": convolutional.resnet,
    "gpt": transformers.gpt,
    "bert": transformers.bert,
    "vit": transformers.vit,
    "llama": transformers.llama,
    "lstm": dense.lstm,
    "unet": convolutional.unet,
    "mixer": dense.mixer,
}


def names() -> list[str]:
    """The models' names, from the simplest to the most varied."""
    return list(_MODELS)


def make(name: str, **options: Any) -> Example:
    """The module `name` and a tuple of example inputs.

    `options` go to the model's builder (``layers=24`` for the transformers). The caller's random
    numbers are left as they were. Raises CompileError MC001 for a name that is not in the zoo.
    """
    if name not in _MODELS:
        raise unknown_name("model", name, names())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module, inputs = _MODELS[name](**options)
        _disturb(module)
    return module.eval().requires_grad_(False), inputs


def describe(name: str) -> str:
    """One line about a model: the first line of its builder's docstring."""
    if name not in _MODELS:
        raise unknown_name("model", name, names())
    return (_MODELS[name].__doc__ or "").splitlines()[0]


def _disturb(module: nn.Module) -> None:
    """Move biases, norm weights and running statistics away from 0 and 1."""
    with torch.no_grad():
        for p in module.parameters():
            if p.ndim == 1:
                p.add_(0.1 * torch.randn_like(p))
        for m in module.modules():
            if isinstance(m, nn.BatchNorm2d) and m.running_mean is not None:
                assert m.running_var is not None
                m.running_mean.normal_(std=0.1)
                m.running_var.uniform_(0.5, 1.5)
