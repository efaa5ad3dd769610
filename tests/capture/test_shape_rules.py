"""Shape rules of our own: strides as the CPU kernel makes them, which PyTorch's fakes do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import minicompile as mc

CHANNELS_LAST = torch.randn(2, 5, 3, 4).to(memory_format=torch.channels_last)
PERMUTED = torch.randn(4, 3, 2, 5).permute(2, 3, 1, 0)


@pytest.mark.parametrize("x", [CHANNELS_LAST, PERMUTED, CHANNELS_LAST[:, :, 1:]])
@pytest.mark.parametrize("arguments", [(1, 0), ((1, 2), (0, 3)), (0, 1), (3,)])
def test_roll(x: torch.Tensor, arguments: Any) -> None:
    want = torch.roll(x, *arguments)
    got = mc.compile(torch.roll, backend="interpreter")(x, *arguments)
    assert torch.equal(got, want) and got.stride() == want.stride()


def test_as_strided_sees_the_order_of_memory_of_a_result() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided(torch.roll(x, -1, 0), (5, 6), (4, 1), 0)

    got = mc.compile(f, backend="interpreter")(CHANNELS_LAST)
    assert torch.equal(got, f(CHANNELS_LAST))
