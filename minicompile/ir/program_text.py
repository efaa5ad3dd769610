"""Program <-> text: the kernels, then one function with the buffers and the calls.

    def NAME(param, ..., *, param, ...) -> (type, ...):
        arena: u8[BYTES]                            the planned scratch memory; always the first line
        NAME: type @ PLACE                          PLACE := arena | arena(offset=INT) | output | tensor
        KERNEL(BUF, ...)                                   | alias(BUF)
        NAME: type = aten.OP(arg, ...)  # m.py:4    an Extern, as in a graph
        NAME[...] = NAME                            write-backs and return, as in a graph
        return out, ...

Of `Program.graph` the text keeps the signature, the outputs and the write-backs: `parse` makes a graph
without nodes.  Buffers of inputs and parameters are those of the signature, and come first.
"""

from __future__ import annotations

import ast

from minicompile.ir.graph import Graph, Value
from minicompile.ir.graph_parse import GraphParser
from minicompile.ir.graph_text import add_end, add_node, add_signature
from minicompile.ir.loop import Buffer, ExternCall, Kernel, KernelCall, Program
from minicompile.ir.loop_parse import parse_kernel
from minicompile.ir.loop_text import kernel_text
from minicompile.ir.text_lines import Lines
from minicompile.ir.text_source import Source
from minicompile.ir.types import TensorType, u8

GIVEN = ("input", "param")  # places of buffers that the signature declares


def program_text(program: Program) -> str:
    """The text of a program, without a line feed at the end."""
    lines = Lines()
    add_signature(lines, program.graph)
    lines.add(1, f"arena: {TensorType(u8, (program.arena_bytes,))}")
    for buffer in program.buffers:
        if buffer.place not in GIVEN:
            lines.add(1, f"{buffer.name}: {buffer.type} @ {_place_text(buffer)}")
    for call in program.calls:
        if isinstance(call, ExternCall):
            add_node(lines, call.node, 1)
        else:
            lines.add(1, f"{call.kernel}({', '.join(call.buffers)})")
    add_end(lines, program.graph)
    return "\n\n\n".join([*map(kernel_text, program.kernels), lines.text()])


def _place_text(b: Buffer) -> str:
    args = [b.base] if b.base else []
    if b.offset is not None:
        args.append(f"offset={b.offset}")
    return f"{b.place}({', '.join(args)})" if args else b.place


def is_program(function: ast.FunctionDef) -> bool:
    """Does the function begin with a declaration of the arena?"""
    match function.body[0]:
        case ast.AnnAssign(target=ast.Name(id="arena"), value=None):
            return True
    return False


def parse_program(
    source: Source, kernels: list[ast.FunctionDef], function: ast.FunctionDef
) -> Program:
    """The program of these kernels and this function. CompileError MC020 where it is malformed."""
    if not is_program(function):
        source.fail(function, "the last function must begin with arena: u8[BYTES]")
    parsed = tuple(parse_kernel(source, k) for k in kernels)
    return _ProgramParser(source, parsed).program(function)


class _ProgramParser:
    def __init__(self, source: Source, kernels: tuple[Kernel, ...]) -> None:
        self.source, self.kernels = source, kernels
        self.graph = GraphParser(source)  # reads what a program shares with a graph
        self.buffers: list[Buffer] = []
        self.calls: list[KernelCall | ExternCall] = []

    def program(self, function: ast.FunctionDef) -> Program:
        inputs, params = self.graph.signature(function)
        self.buffers += [Buffer(v.name, v.type, "input") for v in inputs]
        self.buffers += [Buffer(v.name, v.type, "param") for v in params]
        first, *rest = function.body
        assert isinstance(first, ast.AnnAssign)
        arena = self.source.type(first.annotation)
        for statement in rest:
            self.statement(statement)
        self.graph.check_returns(function)
        return Program(
            function.name,
            self.kernels,
            tuple(self.buffers),
            tuple(self.calls),
            self.signature(function.name, inputs, params),
            arena.numel,
        )

    def signature(self, name: str, inputs: tuple[Value, ...], params: tuple[Value, ...]) -> Graph:
        """The graph of the program, without its nodes."""
        outputs, writes = tuple(self.graph.outputs), tuple(self.graph.writes)
        return Graph(name, inputs, params, (), outputs, writes)

    def statement(self, s: ast.stmt) -> None:
        names = {k.name for k in self.kernels}
        match s:
            case ast.AnnAssign(target=ast.Name(id=name), value=None) if self._is_buffer(s):
                self._buffer(name, s.annotation)
            case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=args)) if name in names:
                buffers = tuple(self._known(a) for a in args)
                self.calls.append(KernelCall(name, buffers))
            case _:
                self.graph.statement(s)
                self.calls += [ExternCall(node) for node in self.graph.nodes]
                self.graph.nodes.clear()

    def _is_buffer(self, s: ast.AnnAssign) -> bool:
        return self.source.declaration(s.annotation)[1] is not None

    def _buffer(self, name: str, annotation: ast.expr) -> None:
        type, place = self.source.declaration(annotation)
        assert place is not None
        where, base, offset = place, "", None
        if isinstance(place, ast.Call):
            _, args, keywords = self.source.call(place)
            where = place.func
            base = self._known(args[0]) if args else ""
            offset = self.source.integer(keywords["offset"]) if "offset" in keywords else None
        kind = self.source.name(where)
        if kind not in PLACES:
            self.source.fail(where, f"unknown place {kind}", f"Places: {', '.join(PLACES)}.")
        self.buffers.append(Buffer(name, type, kind, base, offset))
        self.graph.define(Value(name, type.pure()))

    def _known(self, e: ast.expr) -> str:
        name = self.source.name(e)
        if all(b.name != name for b in self.buffers):
            self.source.fail(e, f"{name} is not a buffer of this program")
        return name


PLACES = ("arena", "output", "tensor", "alias")
