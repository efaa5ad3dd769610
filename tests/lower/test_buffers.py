"""buffers: nothing alive at the same time shares memory; everything else may."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from minicompile.ir.loop import Buffer, KernelCall, Program
from minicompile.ir.types import TensorType, f32
from minicompile.ir.verify import verify
from minicompile.lower.buffers import ALIGN, Buffers, lifetimes, plan
from tests.lower.graphs import lowered

CHAIN = """
def f(x: f32[64]) -> f32[64]:
    with k0:
        t0: f32[64] = exp(x)
    with k1:
        t1: f32[64] = neg(t0)
    with k2:
        t2: f32[64] = sqrt(t1)
    with k3:
        t3: f32[64] = neg(t2)
    return t3
"""


def test_a_chain_needs_two_buffers() -> None:
    program = Buffers().run(lowered(CHAIN))
    offsets = {b.name: b.offset for b in program.buffers if b.place == "arena"}
    assert offsets == {"t0": 0, "t1": 256, "t2": 0}
    assert program.arena_bytes == 512


def test_without_reuse_every_buffer_has_its_own() -> None:
    assert Buffers(reuse=False).run(lowered(CHAIN)).arena_bytes == 3 * 256


def test_private_memory_becomes_a_parameter() -> None:
    program = lowered(
        """
def f(x: f32[4, 8], v: f32[8]) -> f32[4, 8]:
    with k0:
        t1: f32[8] = rsqrt(v)
        t2: f32[4, 8] = broadcast(t1, shape=(4, 8), dims=(1,))
        t3: f32[4, 8] = mul(x, t2)
    return t3
""",
        merge=False,
    )
    done = Buffers().run(program)
    verify(done)
    assert [p.name for p in done.kernels[0].params] == ["v", "x", "t3", "t1"]
    assert done.kernels[0].outputs == 2
    assert done.buffer("t1").place == "arena"


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_live_buffers_never_overlap(specs: list[tuple[int, int, int]]) -> None:
    buffers = [
        Buffer(f"b{n}", TensorType(f32, (size,)), "arena") for n, (size, _, _) in enumerate(specs)
    ]
    calls = []
    for step in range(7):
        alive = [f"b{n}" for n, (_, a, b) in enumerate(specs) if step in (min(a, b), max(a, b))]
        calls.append(KernelCall("k", tuple(alive)))
    program = Program("p", (), tuple(buffers), tuple(calls), None)
    offsets, total = plan(program)
    life, size = lifetimes(program), {b.name: b.type.bytes for b in buffers}
    for a in life:
        assert offsets[a] % ALIGN == 0 and offsets[a] + size[a] <= total
        for b in life:
            both = life[a][0] <= life[b][1] and life[b][0] <= life[a][1]
            if a < b and both:
                assert offsets[a] + size[a] <= offsets[b] or offsets[b] + size[b] <= offsets[a]
