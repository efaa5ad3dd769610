"""Program text: kernels, buffers with their places, calls and externs survive the round trip."""

from __future__ import annotations

import pytest

import minicompile.ops  # noqa: F401  (fills the op table)
from minicompile.errors import CompileError
from minicompile.ir.loop import ExternCall, KernelCall, Program
from minicompile.ir.text import parse, text

TEXT = """\
def k0(x: f32[4] @ strides(2), y: f32[4]) -> y:
    for i in serial(4):
        y[i] = exp(x[i]) + 1.0  # m.py:4


def k1(x: f32[4], y: f32[4]) -> y:
    for i in serial(4):
        y[i] = x[i]


def f(x: f32[4] @ strides(2), *, w: f32[4]) -> (f32[4], f32[2, 2], f32[4]):
    arena: u8[128]
    t1: f32[4] @ arena(offset=0)
    t2: f32[4] @ arena
    v: f32[2, 2] @ alias(t1)
    t3: f32[4] @ tensor
    t4: f32[4] @ strides(1) @ output
    k0(x, t1)
    t3: f32[4] = aten.sin(t1)  # m.py:5; extern: no entry
    k1(t3, t4)
    w[...] = t1
    return t4, v, view(x, (4,), (2,), 0)
"""

HEAD = "def k0(x: f32[4], y: f32[4]) -> y:\n    pass\n\n\n"


def test_round_trip() -> None:
    program = parse(TEXT)
    assert isinstance(program, Program)
    assert text(program) == TEXT
    assert parse(text(program)) == program


def test_what_is_parsed() -> None:
    program = parse(TEXT)
    assert isinstance(program, Program)
    assert [b.name for b in program.buffers] == ["x", "w", "t1", "t2", "v", "t3", "t4"]
    assert [b.place for b in program.buffers] == [
        "input", "param", "arena", "arena", "alias", "tensor", "output",
    ]  # fmt: skip
    assert program.buffer("t1").offset == 0 and program.buffer("t2").offset is None
    assert program.buffer("v").base == "t1"
    assert program.arena_bytes == 128
    first, extern, last = program.calls
    assert first == KernelCall("k0", ("x", "t1")) and last == KernelCall("k1", ("t3", "t4"))
    assert isinstance(extern, ExternCall) and extern.node.op == "aten.sin"
    assert extern.node.why == "extern: no entry"
    assert program.graph.writes[0][0] == "w" and len(program.graph.outputs) == 3


def test_a_program_without_kernels_is_still_a_program() -> None:
    code = "def f(x: f32[4]) -> f32[4]:\n    arena: u8[0]\n    return view(x, (4,), (1,), 0)\n"
    program = parse(code)
    assert isinstance(program, Program) and text(program) == code


WRONG = {
    "no arena": (HEAD + "def f(x: f32[4]) -> f32[4]:\n    return x\n", 5, 1, "must begin with arena"),
    "place": (
        HEAD + "def f(x: f32[4]) -> f32[4]:\n    arena: u8[0]\n    t: f32[4] @ heap\n    return x\n",
        7, 17, "unknown place heap",
    ),
    "buffer": (
        HEAD + "def f(x: f32[4]) -> f32[4]:\n    arena: u8[0]\n    k0(x, t)\n    return x\n",
        7, 11, "t is not a buffer",
    ),
    "kernel": (
        HEAD + "def f(x: f32[4]) -> f32[4]:\n    arena: u8[0]\n    k1(x, x)\n    return x\n",
        7, 5, "unknown op k1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors_point_at_the_place(name: str) -> None:
    bad, line, column, message = WRONG[name]
    with pytest.raises(CompileError) as e:
        parse(bad)
    assert e.value.code == "MC020" and message in e.value.message
    assert e.value.where == f"line {line}, column {column}"
