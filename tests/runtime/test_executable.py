"""Whole programs, given as text: Externs, write-backs, views, strides, threads, errors."""

from __future__ import annotations

import threading

import pytest
import torch

import minicompile.ops  # noqa: F401  (fills the registry)
from minicompile.codegen.numba_cpu import generate
from minicompile.ir.graph import Graph, Node, Output, Value
from minicompile.ir.loop import Buffer, ExternCall, Kernel, KernelCall, Program
from minicompile.ir.text import parse
from minicompile.ir.types import TensorType, f32, i64
from minicompile.runtime.build import build
from minicompile.runtime.executable import Executable
from tests.codegen.harness import folder

SCALE = """\
def scale(x: f32[4, 6], y: f32[4, 6]) -> y:
    for i in serial(4):
        for j in serial(6):
            y[i, j] = x[i, j] * 2.0
"""
T = TensorType(f32, (4, 6))


def value(name: str, type: TensorType = T) -> Value:
    return Value(name, type)


def kernel(text: str) -> Kernel:
    k = parse(text)
    assert isinstance(k, Kernel)
    return k


def executable(program: Program) -> Executable:
    return Executable(program, build(generate(program), folder()))


def scaled(**graph: object) -> Program:
    """y = 2 x with the given outputs and writes of the graph."""
    fields: dict[str, object] = {"outputs": (Output(value("y")),), "writes": (), **graph}
    g = Graph("g", (value("x"),), (), (), **fields)  # type: ignore[arg-type]
    buffers = (Buffer("x", T, "input"), Buffer("y", T, "output"))
    return Program("g", (kernel(SCALE),), buffers, (KernelCall("scale", ("x", "y")),), g)


def test_fresh_outputs() -> None:
    run, x = executable(scaled()), torch.randn(4, 6)
    a, b = run([x], [])[0], run([x], [])[0]
    assert torch.equal(a, 2 * x) and a.data_ptr() != b.data_ptr() and not a.requires_grad


def test_write_back_and_view_of_the_input() -> None:
    view = Output(value("x"), view=((2, 6), (12, 1), 6))
    run = executable(scaled(outputs=(view, Output(value("y"))), writes=(("x", value("y")),)))
    x = torch.randn(4, 6)
    want, version = 2 * x, x._version
    rows, y = run([x], [])
    assert torch.equal(x, want) and torch.equal(y, want) and x._version > version
    assert torch.equal(rows, want[1::2]) and rows.data_ptr() == x[1].data_ptr()


def test_swapped_inputs() -> None:
    g = Graph("g", (value("a"), value("b")), (), (), (), (("a", value("b")), ("b", value("a"))))
    program = Program("g", (), (Buffer("a", T, "input"), Buffer("b", T, "input")), (), g)
    a, b = torch.randn(4, 6), torch.randn(4, 6)
    old_a, old_b = a.clone(), b.clone()
    assert executable(program)([a, b], []) == []
    assert torch.equal(a, old_b) and torch.equal(b, old_a)


def test_output_strides() -> None:
    run = executable(scaled(outputs=(Output(value("y"), (1, 4)),)))
    x = torch.randn(4, 6)
    (y,) = run([x], [])
    assert torch.equal(y, 2 * x) and y.stride() == (1, 4)


def test_externs_split_the_native_call() -> None:
    """kernel, PyTorch, kernel; the result of PyTorch is not laid out as the kernel expects it."""
    node = Node("aten.t", (value("t0"),), (), (value("t1", TensorType(f32, (6, 4))),))
    second = (
        SCALE.replace("scale", "again").replace("4, 6", "6, 4").replace("serial(4)", "serial(N)")
    )
    second = second.replace("serial(6)", "serial(4)").replace("serial(N)", "serial(6)")
    g = Graph("g", (value("x"),), (), (), (Output(value("y", TensorType(f32, (6, 4)))),))
    buffers = (
        Buffer("x", T, "input"),
        Buffer("t0", T, "tensor"),
        Buffer("t1", TensorType(f32, (6, 4)), "tensor"),
        Buffer("y", TensorType(f32, (6, 4)), "output"),
    )
    calls = (
        KernelCall("scale", ("x", "t0")), ExternCall(node), KernelCall("again", ("t1", "y")),
    )  # fmt: skip
    run = executable(Program("g", (kernel(SCALE), kernel(second)), buffers, calls, g))
    x = torch.randn(4, 6)
    assert torch.equal(run([x], [])[0], 4 * x.t())


def test_extern_reads_the_arena_and_an_alias() -> None:
    flat = TensorType(f32, (24,))
    node = Node("aten.flip", (value("t0_flat", flat), (0,)), (), (value("t1", flat),))
    g = Graph("g", (value("x"),), (), (), (Output(value("t1", flat)),))
    buffers = (
        Buffer("x", T, "input"),
        Buffer("t0", T, "arena", offset=64),
        Buffer("t0_flat", flat, "alias", "t0"),
        Buffer("t1", flat, "tensor"),
    )
    calls = (KernelCall("scale", ("x", "t0")), ExternCall(node))
    run = executable(Program("g", (kernel(SCALE),), buffers, calls, g, arena_bytes=192))
    x = torch.randn(4, 6)
    assert torch.equal(run([x], [])[0], 2 * x.flatten().flip(0))


ADD = """\
def plus(x: f32[4, 6], w: f32[4, 6], y: f32[4, 6]) -> y:
    for i in serial(4):
        for j in serial(6):
            y[i, j] = x[i, j] + w[i, j]
"""


def with_parameter() -> Executable:
    g = Graph("g", (value("x"),), (value("w"),), (), (Output(value("y")),))
    buffers = (
        Buffer("x", T, "input"), Buffer("w", T, "param"), Buffer("t", T, "arena", offset=0),
        Buffer("y", T, "output"),
    )  # fmt: skip
    calls = (KernelCall("plus", ("x", "w", "t")), KernelCall("plus", ("t", "w", "y")))
    return executable(Program("g", (kernel(ADD),), buffers, calls, g, arena_bytes=128))


class Reader:
    """Parameters that know their addresses, as a capture's do."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self.list = tensors

    def tensors(self) -> list[torch.Tensor]:
        return self.list

    def pointers(self) -> tuple[int, ...]:
        return tuple(t.data_ptr() for t in self.list)


def test_parameters_are_read_at_every_call() -> None:
    run, x, w = with_parameter(), torch.randn(4, 6), torch.randn(4, 6)
    reader = Reader([w])
    for params in ([w], reader):
        torch.testing.assert_close(run([x], params)[0], x + 2 * w)
    w.mul_(3)
    torch.testing.assert_close(run([x], reader)[0], x + 2 * w)
    reader.list = [torch.zeros(4, 6)]
    assert torch.equal(run([x], reader)[0], x)


def test_concurrent_calls_have_their_own_memory() -> None:
    run = with_parameter()
    wrong: list[int] = []

    def work(seed: int) -> None:
        x, w = torch.full((4, 6), float(seed)), torch.full((4, 6), float(10 * seed))
        for _ in range(300):
            if not torch.equal(run([x], [w])[0], x + 2 * w):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


LOOKUP = """\
def look(ids: i64[3], x: f32[4, 6], y: f32[3, 6]) -> y:
    for i in serial(3):
        n: i64 = ids[i]
        check(n, 4)  # m.py:12
        for j in serial(6):
            y[i, j] = x[n, j]
"""


def test_index_error_names_the_line_and_changes_nothing() -> None:
    ids, y = TensorType(i64, (3,)), TensorType(f32, (3, 6))
    g = Graph(
        "g", (value("ids", ids), value("x")), (), (), (Output(value("y", y)),),
        (("ids", value("ids2", ids)),),
    )  # fmt: skip
    copy = kernel(
        "def copy(ids: i64[3], ids2: i64[3]) -> ids2:\n    for i in serial(3):\n"
        "        ids2[i] = ids[i] + 1\n"
    )
    buffers = (
        Buffer("ids", ids, "input"), Buffer("x", T, "input"), Buffer("y", y, "output"),
        Buffer("ids2", ids, "tensor"),
    )  # fmt: skip
    calls = (KernelCall("look", ("ids", "x", "y")), KernelCall("copy", ("ids", "ids2")))
    run = executable(Program("g", (kernel(LOOKUP), copy), buffers, calls, g))
    x, numbers = torch.randn(4, 6), torch.tensor([0, 3, 1])
    assert torch.equal(run([numbers, x], [])[0], x[[0, 3, 1]]) and numbers.tolist() == [1, 4, 2]
    with pytest.raises(IndexError, match=r"MC050: .* axis of size 4\n  at m.py:12"):
        run([numbers, x], [])
    assert numbers.tolist() == [1, 4, 2]
    numbers.sub_(1)
    assert torch.equal(run([numbers, x], [])[0], x[[0, 3, 1]])  # the failed check is forgotten


def test_the_call_is_readable() -> None:
    assert with_parameter().text == (
        "def forward(inputs, params):\n"
        "    (x,) = inputs\n"
        "    table = addresses(params)\n"
        "    memory = take(1)\n"
        "    y = empty((4, 6), (6, 1), float32)\n"
        "    g(x.data_ptr(), y.data_ptr(), table.address, memory.address, 1)\n"
        "    give(memory)\n"
        "    return [y]\n"
    )
