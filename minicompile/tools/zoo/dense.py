# mypy: disable-error-code="no-any-return"
"""Models made of matrix products alone: a perceptron, a recurrent net, an MLP-Mixer."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def mlp(batch: int = 32) -> tuple[nn.Module, tuple[Tensor]]:
    """A perceptron for digits: 784-512-256-10 with ReLU."""
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    return model, (torch.randn(batch, 784),)


class LSTM(nn.Module):
    """A long short-term memory cell, unrolled over time by an ordinary Python loop.

    The gates are those of Hochreiter and Schmidhuber with a forget gate: input i, forget f, cell g,
    output o; c' = f*c + i*g and h' = o*tanh(c').
    """

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.from_input = nn.Linear(features, 4 * hidden)
        self.from_state = nn.Linear(hidden, 4 * hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """x: f32[B, T, features] -> logits: f32[B, classes] after the last step."""
        h = x.new_zeros(x.shape[0], self.hidden)
        c = torch.zeros_like(h)
        for step in x.unbind(1):
            h, c = self.cell(step, h, c)
        return self.head(h)

    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        gates = self.from_input(x) + self.from_state(h)
        i, f, g, o = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


def lstm(steps: int = 16, batch: int = 4) -> tuple[nn.Module, tuple[Tensor]]:
    """An LSTM cell of width 64, unrolled over 16 steps."""
    return LSTM(features=32, hidden=64, classes=10), (torch.randn(batch, steps, 32),)


class MixerBlock(nn.Module):
    """Mixes along the patches, then along the channels, each with a residual connection."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.across_patches = _two_layers(patches, patches * 2)
        self.norm2 = nn.LayerNorm(width)
        self.across_channels = _two_layers(width, width * 2)

    def forward(self, x: Tensor) -> Tensor:
        """x: f32[B, patches, width], and the same out."""
        x = x + self.across_patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.across_channels(self.norm2(x))


def _two_layers(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class Mixer(nn.Module):
    """MLP-Mixer (Tolstikhin et al. 2021): an image as patches, mixed by perceptrons only."""

    def __init__(self, size: int, patch: int, width: int, layers: int, classes: int) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        patches = (size // patch) ** 2
        self.blocks = nn.Sequential(*(MixerBlock(patches, width) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, image: Tensor) -> Tensor:
        """image: f32[B, 3, size, size] -> logits: f32[B, classes]."""
        x = self.embed(image).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(dim=1))


def mixer(layers: int = 4, batch: int = 1) -> tuple[nn.Module, tuple[Tensor]]:
    """MLP-Mixer on 32x32 images in 4x4 patches: 4 blocks of width 96."""
    model = Mixer(size=32, patch=4, width=96, layers=layers, classes=10)
    return model, (torch.randn(batch, 3, 32, 32),)
