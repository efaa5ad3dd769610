"""Fake tensors: shape, dtype, strides and device, but no data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

from minicompile.capture.stand_in import without_dynamo


@contextlib.contextmanager
def fake_tensors() -> Iterator[FakeTensorMode]:
    """A mode in which tensors are fake, not entered yet; real ones may be mixed in."""
    with without_dynamo():
        yield FakeTensorMode(allow_non_fake_inputs=True)


def fake_like(mode: FakeTensorMode, t: torch.Tensor) -> torch.Tensor:
    """A fake of t, in memory of its own; a parameter stays one.

    (`FakeTensorMode.from_tensor` would import TorchDynamo, see stand_in.)
    """
    with _disable_current_modes(), mode, torch.inference_mode(False), torch.no_grad():
        fake = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
        fake.requires_grad_(t.requires_grad)
    if isinstance(t, nn.Parameter):
        fake._is_param = True  # what isinstance(x, Parameter) asks
    return fake
