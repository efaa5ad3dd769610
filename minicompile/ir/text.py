"""The text of every IR: valid Python syntax that parses back to the same IR.

    parse(text(ir)) == ir         up to origins: a comment keeps file and line (see `plain`)
    text(parse(t)) == t           byte for byte, for a text that was printed

What the grammars in ir.graph and ir.loop leave open:

    t1: f32[4] = add(t0, 1.0)    # m.py:4, m.py:7; why    lines of the user; the compiler's own reason
    # t3 -> t4 kept apart: reason                         a verdict of fuse, above the line of t4
    op('aten.random.from')(x)                             an overload named like a Python keyword
    acc += e   acc *= e   acc |= e   acc &= e             Accumulate add, mul, or, and
    acc = max(acc, e)                                     Accumulate max, min: the element on both sides
    acc = 0.0   y[()] = acc                               0-d: a register is a plain name, memory has [()]
    f32(0.5) + f32(2.0)                                   a constant whose dtype no operand beside it tells
    cast(e, i64)                                          a result dtype that the operands do not settle
    def k0(x: f32[4], y: f32[4]) -> y:                    a kernel names the parameters that it writes
    arena: u8[4096]                                       first line of a program: its scratch memory

A dtype stands behind an op or around a literal exactly where leaving it out would change it.
"""

from __future__ import annotations

import ast
from dataclasses import fields, replace
from typing import TypeVar

from minicompile.ir.graph import Graph, Node
from minicompile.ir.graph_parse import parse_graph
from minicompile.ir.graph_text import graph_text
from minicompile.ir.loop import (
    Accumulate,
    Alloc,
    Bind,
    Check,
    ExternCall,
    For,
    Kernel,
    Program,
    Store,
)
from minicompile.ir.loop_parse import parse_kernel
from minicompile.ir.loop_text import kernel_text
from minicompile.ir.program_text import is_program, parse_program, program_text
from minicompile.ir.text_source import Source

IR = Graph | Program | Kernel
T = TypeVar("T")

# what has origins, or holds something that has
_HOLDERS = (Graph, Node, Program, Kernel, ExternCall, For, Alloc, Bind, Store, Accumulate, Check)


def text(ir: IR) -> str:
    """The text of a graph, a program or one kernel; ends with a line feed."""
    if isinstance(ir, Graph):
        return graph_text(ir) + "\n"
    return (program_text(ir) if isinstance(ir, Program) else kernel_text(ir)) + "\n"


def plain(ir: T) -> T:
    """The IR without origins: what `parse` gives back exactly."""
    if isinstance(ir, tuple):
        return tuple(plain(x) for x in ir)  # type: ignore[return-value]
    if not isinstance(ir, _HOLDERS):
        return ir
    changed = {f.name: plain(getattr(ir, f.name)) for f in fields(ir) if f.name != "origins"}
    if hasattr(ir, "origins"):
        changed["origins"] = ()
    return replace(ir, **changed)  # type: ignore[type-var]


def parse(text: str) -> IR:
    """The inverse of `text`. CompileError MC020, with line and column, where the text is malformed.

    A function that begins with a declaration of `arena` is a program, one that returns a graph, any
    other a kernel.
    """
    source = Source(text)
    functions = [s for s in source.tree.body if isinstance(s, ast.FunctionDef)]
    for statement in source.tree.body:
        if not isinstance(statement, ast.FunctionDef):
            source.fail(statement, "a function is expected here")
    if not functions:
        source.fail(source.tree, "there is no function in this text")
    *kernels, last = functions
    if kernels or is_program(last):
        return parse_program(source, kernels, last)
    if any(isinstance(s, ast.Return) for s in last.body):
        return parse_graph(source, last)
    return parse_kernel(source, last)
