"""Naive kernels as `lower` makes them, by text; and: does a transform keep a kernel's meaning?"""

from __future__ import annotations

import torch

from minicompile.ir.interpret import run_kernel
from minicompile.ir.loop import Kernel
from minicompile.ir.text import parse, text
from minicompile.ir.verify import problems


def kernel(source: str) -> Kernel:
    """Parse one kernel (indented text is fine)."""
    import textwrap

    k = parse(textwrap.dedent(source))
    assert isinstance(k, Kernel)
    return k


def results(k: Kernel, seed: int = 0) -> list[torch.Tensor]:
    """The outputs for random inputs. Index tensors (i64) hold 0, 1, 2, ..."""
    torch.manual_seed(seed)
    buffers = {}
    for p in k.params:
        shape = p.type.dims
        if p in k.written:
            buffers[p.name] = torch.full(shape, 7, dtype=p.type.dtype.torch)
        elif p.type.dtype.is_float:
            buffers[p.name] = torch.randn(shape, dtype=torch.float32).to(p.type.dtype.torch)
        else:
            count = torch.arange(p.type.numel) % 5
            buffers[p.name] = count.reshape(shape).to(p.type.dtype.torch)
    run_kernel(k, buffers)
    return [buffers[p.name] for p in k.written]


def same(before: Kernel, after: Kernel) -> Kernel:
    """`after` is well formed, survives printing and parsing, and computes what `before` computes."""
    assert not problems(before), text(before)
    assert not problems(after), text(after) + "\n".join(map(str, problems(after)))
    assert parse(text(after)) == after
    for want, have in zip(results(before), results(after)):
        torch.testing.assert_close(have.reshape(want.shape), want, rtol=1e-4, atol=1e-4)
    return after


def linear(m: int, n: int, k: int, transposed: bool = True, epilogue: str = "t0 + b[j]") -> Kernel:
    w, at = (f"w: f32[{n}, {k}]", "w[j, k]") if transposed else (f"w: f32[{k}, {n}]", "w[k, j]")
    return kernel(f"""
        def k0(x: f32[{m}, {k}], {w}, b: f32[{n}], y: f32[{m}, {n}]) -> y:
            for i in serial({m}):
                for j in serial({n}):
                    acc: f32 @ register
                    acc = 0.0
                    for k in serial({k}):
                        acc += x[i, k] * {at}
                    t0: f32 = acc
                    y[i, j] = {epilogue}
        """)


def softmax(m: int, n: int) -> Kernel:
    return kernel(f"""
        def k0(x: f32[{m}, {n}], y: f32[{m}, {n}]) -> y:
            for i in serial({m}):
                e: f32[{n}] @ local
                top: f32 @ register
                total: f32 @ register
                top = -inf
                for r in serial({n}):
                    top = max(top, x[i, r])
                t0: f32 = top
                total = 0.0
                for j in serial({n}):
                    e[j] = exp(x[i, j] - t0)
                    total += e[j]
                t1: f32 = total
                for j_2 in serial({n}):
                    y[i, j_2] = e[j_2] / t1
        """)


def softmax_columns(m: int, n: int) -> Kernel:
    return kernel(f"""
        def k0(x: f32[{m}, {n}], y: f32[{m}, {n}]) -> y:
            for i in serial({n}):
                e: f32[{m}] @ local
                total: f32 @ register
                total = 0.0
                for j in serial({m}):
                    e[j] = exp(x[j, i])
                    total += e[j]
                t1: f32 = total
                for j_2 in serial({m}):
                    y[j_2, i] = e[j_2] / t1
        """)


def convolution(
    b: int, c: int, o: int, h: int, w: int, step: int = 1, padded: bool = True
) -> Kernel:
    """3 x 3, with zero padding as a condition (or none), and a scale per output channel."""
    rows, columns = f"h * {step} + p", f"q * {step} + r"
    height, width = (h * step, w * step) if padded else (h * step + 2, w * step + 2)
    load = f"x[n, c, {rows}, {columns}]"
    if padded:
        rows, columns = rows + " - 1", columns + " - 1"
        conditions = f"0 <= {rows} < {height} and 0 <= {columns} < {width}"
        load = f"(x[n, c, {rows}, {columns}] if {conditions} else 0.0)"
    return kernel(f"""
        def k0(x: f32[{b}, {c}, {height}, {width}], w: f32[{o}, {c}, 3, 3], v: f32[{o}],
               y: f32[{b}, {o}, {h}, {w}]) -> y:
            for n in serial({b}):
                for o in serial({o}):
                    scale: f32 = rsqrt(v[o] * v[o] + 1.0)
                    for h in serial({h}):
                        for q in serial({w}):
                            acc: f32 @ register
                            acc = 0.0
                            for c in serial({c}):
                                for p in serial(3):
                                    for r in serial(3):
                                        acc += {load} * w[o, c, p, r]
                            t0: f32 = acc
                            y[n, o, h, q] = maximum(t0 * scale, 0.0)
        """)
