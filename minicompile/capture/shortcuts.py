"""Shortcuts of PyTorch past the recorder, closed for the time of a capture."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

import torch
import torch.nn.functional as F


@contextlib.contextmanager
def no_shortcuts() -> Iterator[None]:
    """Let every call arrive at the recorder.

    A TorchFunctionMode is popped while it handles a call, so inside a Python function that checks for
    overrides (F.multi_head_attention_forward) the calls below would not be seen: the checks say no
    here.  The fused encoder kernel is switched off, and so is the cache of autocast, which would keep
    fakes.  FakeTensorMode logs shape errors at length before it raises them: that is silenced.
    """
    owner = threading.get_ident()
    checks = {n: getattr(F, n) for n in dir(F) if n.startswith("has_torch_function")}
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level, fast = log.level, torch.backends.mha.get_fastpath_enabled()
    cache = torch.is_autocast_cache_enabled()
    for name, check in checks.items():
        setattr(F, name, lambda *a, c=check: threading.get_ident() != owner and c(*a))
    log.setLevel(logging.CRITICAL)
    torch.backends.mha.set_fastpath_enabled(False)
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(cache)
        torch.backends.mha.set_fastpath_enabled(fast)
        log.setLevel(level)
        for name, check in checks.items():
            setattr(F, name, check)
