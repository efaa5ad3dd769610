"""What schedules need to know of the processor: vector registers and cache sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

LANES = 16  # elements of a vector, of every dtype (see codegen): one AVX-512 register of f32


@dataclass(frozen=True)
class Machine:
    """`registers` counts vectors of 16 f32: 32 with AVX-512, 8 pairs with AVX2. Caches in bytes."""

    registers: int = 32
    l1: int = 32 << 10
    l2: int = 1 << 20


@cache
def machine() -> Machine:
    """This machine. Caches fall back to common sizes where the system does not tell."""
    from llvmlite import binding

    wide = binding.get_host_cpu_features().get("avx512f", False)
    return Machine(32 if wide else 8, _cache_size(1, 32 << 10), _cache_size(2, 1 << 20))


def _cache_size(level: int, default: int) -> int:
    """Bytes of the data cache of this level, from Linux's description of core 0."""
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, which = (folder / "type").read_text(), int((folder / "level").read_text())
        if which == level and "Instruction" not in kind:
            return int((folder / "size").read_text().strip().rstrip("K")) << 10
    return default
