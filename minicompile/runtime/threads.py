"""Threads: parallel kernels run on PyTorch's own OpenMP pool.

A region costs 1-2 us when the pool is warm, and no second pool competes with PyTorch's for the cores.
The number of threads is torch.get_num_threads(), at every call.  Iterations of a parallel loop are
independent, so results do not depend on how they are divided.  Where PyTorch brings no GNU OpenMP
library (macOS, Windows), everything runs on one thread.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path

import torch

from minicompile.codegen.host_compiler import REGION, TEAM, THREAD
from minicompile.runtime import objects

_FUNCTIONS = {REGION: "GOMP_parallel", THREAD: "omp_get_thread_num", TEAM: "omp_get_num_threads"}


@functools.cache
def available() -> bool:
    """Find the OpenMP library of this process and define its functions as symbols for hosts."""
    library = _library()
    for symbol, name in _FUNCTIONS.items():
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value if library else 0
        objects.define(symbol, address or _NEVER_CALLED)
    return library is not None


def _library() -> ctypes.CDLL | None:
    for file in sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*")):
        return ctypes.CDLL(str(file))
    try:
        return ctypes.CDLL("libgomp.so.1")
    except OSError:
        return None


# An address for symbols that must be defined although one thread never uses them.
_NEVER_CALLED: int = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value or 0


def counter() -> Callable[[], int]:
    """The function that says how many threads to use now."""
    return torch.get_num_threads if available() else lambda: 1
