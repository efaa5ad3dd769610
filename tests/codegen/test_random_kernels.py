"""Random loop nests (those of the interpreter's tests): the generated code against the interpreter.

Where the iterations of an innermost loop are independent, it may become a vector loop or be unrolled.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from minicompile.ir.interpret import run_kernel
from minicompile.ir.loop import For, Kernel, Param, Stmt
from minicompile.ir.ranges import accesses, conflict, inner_ranges
from minicompile.ir.types import TensorType, i64
from minicompile.ir.walk import walk
from tests.codegen.harness import compiled, program_of
from tests.ir.test_random_loops import BUFFERS, blocks


def scheduled(body: tuple[Stmt, ...], kinds: list[str]) -> tuple[Stmt, ...]:
    """The same nests with some loops of the next kind in the (cyclic) list, where that is legal."""
    out = []
    for s in body:
        if isinstance(s, For):
            kinds[:] = kinds[1:] + kinds[:1]
            s = replace(s, kind=kinds[0] if legal(s, kinds[0]) else "serial")
            s = replace(s, body=s.body if s.kind == "vector" else scheduled(s.body, kinds))
            if s.kind == "vector":
                s = replace(s, extent=16, active=s.extent)
        out.append(s)
    return tuple(out)


def legal(s: For, kind: str) -> bool:
    if kind != "vector":
        return True
    plain = s.step == 1 and s.last is None and not any(isinstance(x, For) for x in walk(s.body))
    return plain and not any(conflict(s, at, inner_ranges(s)) for at in accesses(s).values())


@settings(
    max_examples=15, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(
    body=blocks((), BUFFERS, 3),
    kinds=st.lists(
        st.sampled_from(["serial", "unroll", "vector", "vector"]), min_size=3, max_size=5
    ),
    seed=st.integers(0, 99),
)
def test_generated_code_is_the_kernel(body: tuple[Stmt, ...], kinds: list[str], seed: int) -> None:
    params = tuple(Param(name, TensorType(i64, shape)) for name, shape in BUFFERS.items())
    generator = torch.Generator().manual_seed(seed)
    start = {n: torch.randint(-9, 9, shape, generator=generator) for n, shape in BUFFERS.items()}
    want, got = ({n: t.clone() for n, t in start.items()} for _ in range(2))
    run_kernel(Kernel("k", params, 3, body), want)
    program = program_of(Kernel("k", params, 3, scheduled(body, list(kinds))))
    executable = compiled(program)
    host = executable.native.hosts["program"]
    memory = torch.empty(max(executable.native.source.scratch_bytes, 1), dtype=torch.uint8)
    host(*(got[b.name].data_ptr() for b in program.buffers), 0, memory.data_ptr(), 1)
    for name in BUFFERS:
        assert torch.equal(want[name], got[name]), name
