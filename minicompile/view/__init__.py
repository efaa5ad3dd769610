"""Seeing the compiler: any IR as a drawing, and what a pass changed.

    dot(ir)              DOT text of a graph, a program or a kernel
    diff(before, after)  what changed, as one sentence and as DOT
    render(dot, path)    DOT text into an .svg, .pdf or .png file
    legend()             what the boxes and marks mean, as DOT

This package reads `ir` only; it never changes what is compiled.
"""
