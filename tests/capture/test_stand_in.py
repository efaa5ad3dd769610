"""A capture does not load TorchDynamo, and leaves no trace for those who do."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import torch
from minicompile.capture.tracer import capture

def loaded():
    return "torch._dynamo" in sys.modules

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.Softmax(-1))
capture(model, (torch.randn(2, 4),), {})
assert not loaded() and "_dynamo" not in vars(torch), "a capture loads Dynamo"

def asks(x):
    from torch._dynamo.source import LocalSource
    assert torch._dynamo.config.suppress_errors is False
    return x + len(LocalSource("x").name)

capture(asks, (torch.randn(2),), {})
assert loaded() and torch._dynamo.eval_frame is sys.modules["torch._dynamo.eval_frame"]

@torch.compile(backend="eager", fullgraph=True)
def double(x):
    return torch.addmm(x, x, x) * 2

x = torch.randn(3, 3)
assert torch.equal(double(x), torch.addmm(x, x, x) * 2)
print("fine")
"""


def test_dynamo_is_loaded_only_on_demand() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr
