"""Our own shape rules say what the CPU kernels do."""

from __future__ import annotations

import pytest
import torch

import minicompile as mc
from minicompile.capture.shape_rules import layer_norm


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("weights", ["none", "same", "mixed"])
@pytest.mark.parametrize("axes", [1, 2])
def test_layer_norm(dtype: torch.dtype, weights: str, axes: int) -> None:
    if weights == "mixed" and dtype in (torch.float32, torch.float64):
        return  # only half precision mixes
    x = torch.randn(2, 5, 3, 4).to(dtype).transpose(1, 2)
    shape = x.shape[-axes:]
    kind = torch.float32 if weights == "mixed" else dtype
    w = None if weights == "none" else torch.ones(shape, dtype=kind)
    want = torch.native_layer_norm(x, shape, w, w, 1e-5)
    for got, real in zip(layer_norm(x, shape, w, w, 1e-5), want, strict=True):
        assert (got.shape, got.dtype, got.stride()) == (real.shape, real.dtype, real.stride())


def test_wrong_shapes_are_still_refused() -> None:
    with pytest.raises(RuntimeError, match="normalized_shape"):
        mc.compile(torch.nn.LayerNorm(4, elementwise_affine=False))(torch.randn(2, 3))
