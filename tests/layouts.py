"""Tensors in every kind of memory: transposed, with gaps, expanded, starting in the middle of a storage."""

from __future__ import annotations

import torch

LAYOUTS = ("contiguous", "contiguous", "transposed", "gaps", "expanded", "offset")


def laid_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The elements of x in memory of such a layout (of x's first row only, if expanded)."""
    if layout == "transposed" and x.dim() > 1:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "gaps" and x.dim():
        return torch.stack([x, x], -1)[..., 0]
    if layout == "expanded" and x.dim() and x.shape[0]:
        return x[:1].clone().expand(x.shape)
    if layout == "offset":
        return torch.cat([x.new_zeros(3), x.reshape(-1)])[3:].view(x.shape)
    return x.clone()
