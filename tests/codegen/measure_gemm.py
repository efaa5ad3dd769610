"""GEMM through the code generator: ``python -m tests.codegen.measure_gemm``.

Prints the time of a register-tiled kernel (packed weights), of torch.mm, and the rate of both.
"""

from __future__ import annotations

import timeit
from functools import partial

import torch

from tests.codegen.harness import compiled, kernel_of, program_of

KERNEL = """\
def gemm(x: f32[{m}, {k}], w: f32[{panels}, {k}, {nv}, 16], y: f32[{m}, {n}]) -> y:
    for j0 in serial({panels}):
        for i0 in serial({rows}, step={mr}, last={last}):
            acc: f32[{mr}, {nv}, 16] @ register
            for i1 in unroll({mr}):
                for j1 in unroll({nv}):
                    for j2 in vector(16):
                        acc[i1, j1, j2] = 0.0
            for k in serial({k}):
                for i1 in unroll({mr}):
                    for j1 in unroll({nv}):
                        for j2 in vector(16):
                            acc[i1, j1, j2] += x[i0 + i1, k] * w[j0, k, j1, j2]
            for i1 in unroll({mr}):
                for j1 in unroll({nv}):
                    for j2 in vector(16):
                        y[i0 + i1, j0 * {wide} + j1 * 16 + j2] = acc[i1, j1, j2]
"""


def gemm_text(m: int, k: int, n: int, mr: int, nv: int) -> str:
    wide = 16 * nv
    return KERNEL.format(
        m=m, k=k, n=n, mr=mr, nv=nv, wide=wide, panels=n // wide, rows=-(-m // mr), last=m - mr
    )


def best(f: object, count: int) -> float:
    return min(timeit.repeat(f, number=count, repeat=11)) / count  # type: ignore[arg-type]


def main() -> None:
    torch.set_num_threads(1)
    for m, k, n in ((32, 256, 256), (128, 768, 768), (512, 512, 512)):
        x, w = torch.randn(m, k), torch.randn(k, n)
        y = torch.empty(m, n)
        count = max(3, int(2e8 / (2 * m * k * n)))
        lines = [
            f"torch.mm {2 * m * k * n / best(partial(torch.mm, x, w, out=y), count) / 1e9:4.0f}"
        ]
        for mr, nv in ((14, 2), (6, 4)):
            packed = w.reshape(k, n // (16 * nv), nv, 16).permute(1, 0, 2, 3).contiguous()
            run = compiled(program_of(kernel_of(gemm_text(m, k, n, mr, nv))))
            torch.testing.assert_close(run([x, packed], [])[0], x @ w, atol=1e-3, rtol=1e-4)
            rate = 2 * m * k * n / best(partial(run.run, [x, packed], []), count) / 1e9
            lines.append(f"{mr}x{16 * nv} {rate:4.0f} ({run.native.seconds:.2f} s to compile)")
        print(f"{m}x{k}x{n} GFLOP/s: " + ", ".join(lines))


if __name__ == "__main__":
    main()
