# mypy: disable-error-code="no-any-return"
"""Convolutional models: LeNet, a small ResNet-18, a U-Net."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LeNet(nn.Module):
    """LeNet-5 (LeCun et al. 1998) with ReLU, batch norm and max pooling, as it is taught today."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 6, 5, padding=2), nn.BatchNorm2d(6)
        self.conv2, self.norm2 = nn.Conv2d(6, 16, 5), nn.BatchNorm2d(16)
        self.fc1, self.fc2 = nn.Linear(16 * 5 * 5, 120), nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, image: Tensor) -> Tensor:
        """image: f32[B, 1, 28, 28] -> log-probabilities: f32[B, classes]."""
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(image))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        x = F.relu(self.fc2(x))
        return F.log_softmax(self.fc3(x), dim=-1)


def lenet(batch: int = 4) -> tuple[nn.Module, tuple[Tensor]]:
    """LeNet-5 on 28x28 digits, with batch norm and max pooling."""
    return LeNet(classes=10), (torch.randn(batch, 1, 28, 28),)


class Residual(nn.Module):
    """Two 3x3 convolutions beside a shortcut; the shortcut is a 1x1 convolution where shapes change."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            down = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(down, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet(width: int = 32, batch: int = 1) -> tuple[nn.Module, tuple[Tensor]]:
    """ResNet-18 (He et al. 2015) of half the width, on 64x64 images."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    channels = width
    for stage in range(4):
        wider, stride = width * 2**stage, 1 if stage == 0 else 2
        layers += [Residual(channels, wider, stride), Residual(wider, wider, 1)]
        channels = wider
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return nn.Sequential(*layers), (torch.randn(batch, 3, 64, 64),)


def _twice(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.GroupNorm(4, outputs),
        nn.SiLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.GroupNorm(4, outputs),
        nn.SiLU(),
    )


class UNet(nn.Module):
    """U-Net (Ronneberger et al. 2015): down by pooling, up by transposed convolution.

    What the way down saw at each size is concatenated to what comes up (the skip connections).
    """

    def __init__(self, width: int, depth: int, classes: int) -> None:
        super().__init__()
        sizes = [width * 2**d for d in range(depth + 1)]
        self.stem = _twice(3, width)
        self.down = nn.ModuleList(_twice(a, b) for a, b in pairwise(sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in pairwise(sizes))
        self.merge = nn.ModuleList(_twice(2 * a, a) for a in sizes[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, image: Tensor) -> Tensor:
        """image: f32[B, 3, H, W] -> class scores for each pixel: f32[B, classes, H, W]."""
        x, skipped = self.stem(image), []
        for down in self.down:
            skipped.append(x)
            x = down(F.max_pool2d(x, 2))
        for up, merge, skip in reversed(list(zip(self.up, self.merge, skipped))):
            x = merge(torch.cat([up(x), skip], dim=1))
        return self.head(x)


def unet(size: int = 32, batch: int = 1) -> tuple[nn.Module, tuple[Tensor]]:
    """A U-Net of depth 2 on 32x32 images, with transposed convolutions and skip connections."""
    return UNet(width=16, depth=2, classes=4), (torch.randn(batch, 3, size, size),)
