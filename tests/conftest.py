"""Settings for all tests: reproducible random numbers, few threads, no time limit per example."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile(
    "minicompile", deadline=None, derandomize=True, print_blob=True, max_examples=50
)
hypothesis.settings.load_profile("minicompile")


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Every test starts from seed 0, with whatever grad mode and threads it changes put back."""
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    with torch.enable_grad():
        yield
    torch.set_num_threads(threads)
