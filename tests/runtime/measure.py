"""Times of the runtime: ``python -m tests.runtime.measure``.

Prints what a call costs beside its kernels (16 elements, one output), by part, and what building costs
when nothing and when everything is in the cache.
"""

from __future__ import annotations

import tempfile
import timeit
from collections.abc import Callable

import torch

from minicompile.codegen.numba_cpu import generate
from minicompile.runtime import build as build_module
from minicompile.runtime.build import build
from minicompile.runtime.executable import Addresses, Executable, empty
from tests.codegen.harness import kernel_of, program_of

TEXT = """\
def k0(x: f32[16], y: f32[16]) -> y:
    for v in vector(16):
        y[v] = x[v] * 2.0
"""


def nanoseconds(f: Callable[[], object]) -> float:
    return min(timeit.repeat(f, number=20000, repeat=15)) / 20000 * 1e9


def main() -> None:
    torch.set_num_threads(1)
    program = program_of(kernel_of(TEXT))
    folder = tempfile.mkdtemp()
    build(generate(program_of(kernel_of(TEXT.replace("2.0", "3.0")))), folder)  # wakes Numba up
    native = build(generate(program), folder)
    build_module._addresses.clear()
    again = build(generate(program), folder)
    print(f"build: {native.seconds * 1e3:.0f} ms, from the cache {again.seconds * 1e3:.1f} ms")
    run, x, y = Executable(program, native), torch.randn(16), torch.empty(16)
    inputs, host = [x], native.hosts["program"]
    addresses, params = Addresses(), [torch.empty(1) for _ in range(50)]
    parts: dict[str, Callable[[], object]] = {
        "whole call": lambda: run.run(inputs, ()),
        "allocating the output": lambda: empty((16,), (1,), torch.float32),
        "torch.empty": lambda: torch.empty((16,), dtype=torch.float32),
        "the host, 5 arguments": lambda: host(x.data_ptr(), y.data_ptr(), 0, 0, 1),
        "table of 50 parameters": lambda: addresses(params),
        "torch.mul, for comparison": lambda: torch.mul(x, 2.0),
    }
    for name, f in parts.items():
        print(f"{name:26} {nanoseconds(f):6.0f} ns")


if __name__ == "__main__":
    main()
