"""Loads of every other element: right for every width, and never beyond the last element."""

from __future__ import annotations

import pytest
import torch

import minicompile as mc

WIDTHS = (1, 2, 5, 11, 16, 17, 26, 31, 32, 33, 64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
def test_every_other_element(dtype: torch.dtype) -> None:
    def both(*xs: torch.Tensor) -> list[torch.Tensor]:
        return [part for x in xs for part in (x[:, ::2] == 0, x[:, 1::2].float() + 1)]

    xs = [(torch.randn(3, w) * 2).to(dtype) for w in WIDTHS]
    for got, want in zip(mc.compile(both)(*xs), both(*xs), strict=True):
        assert torch.equal(got, want)
