"""Seeing the compiler: any IR as a drawing, and what a pass changed.

    dot(ir)              DOT text of a graph, a program or a kernel
    diff(before, after)  what changed, as one sentence and as DOT
    render(dot, path)    DOT text into an .svg, .pdf or .png file
    legend()             what the boxes and marks mean, as DOT

This package reads `ir` only; it never changes what is compiled.
"""

from __future__ import annotations

from typing import Any

from minicompile.ir.graph import Graph
from minicompile.ir.loop import Kernel, Program
from minicompile.view.diff import Diff, diff
from minicompile.view.dot_buffers import dot_buffers
from minicompile.view.dot_graph import dot_graph
from minicompile.view.dot_loop import dot_kernel, dot_program
from minicompile.view.rendering import draw, drawing_program, render
from minicompile.view.style import legend, notice

__all__ = ["Diff", "diff", "dot", "draw", "drawing_program", "legend", "render", "svg"]


def dot(ir: Any, fold: bool = True) -> str:
    """The DOT text of any IR; the same bytes in every run.

    A graph is drawn as boxes (with `fold`, equal blocks once), a kernel or program as nested loops, a
    program whose memory has been planned as bars of its buffers' lifetimes. Source text has no drawing,
    and says so.
    """
    if isinstance(ir, Graph):
        return dot_graph(ir, fold)
    if isinstance(ir, Kernel):
        return dot_kernel(ir)
    if isinstance(ir, Program):
        planned = any(b.offset is not None for b in ir.buffers)
        return dot_buffers(ir) if planned else dot_program(ir)
    return notice("source text: read .text")


def svg(dot_text: str) -> str:
    """The picture as SVG text. Raises CompileError MC060 if nothing can draw it."""
    return draw(dot_text, "svg").decode()
