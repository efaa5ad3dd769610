"""parallel: only outermost loops, only independent ones, only where there is enough to do."""

from __future__ import annotations

import pytest

from minicompile.ir.loop import Kernel, Program
from minicompile.ir.text import text
from minicompile.lower.parallel import Parallel, parallel
from minicompile.lower.tile import tile
from minicompile.lower.vectorize import vectorize
from tests.lower.nests import kernel, linear, same, softmax


def scheduled(k: Kernel) -> Kernel:
    return parallel(vectorize(tile(k)[0]), least=4.0)


@pytest.mark.parametrize("before", [softmax(300, 100), linear(70, 90, 300)])
def test_big_kernels_run_on_all_threads(before):
    after = same(before, scheduled(before))
    assert text(after).count("parallel(") == 1


def test_small_kernels_stay_serial():
    assert "parallel" not in text(scheduled(softmax(3, 20)))
    assert "parallel" in text(parallel(vectorize(softmax(3, 20)), least=0.0))


def test_dependences_and_several_loops_stay_serial():
    total = kernel("""
        def k0(x: f32[1000, 1000], y: f32) -> y:
            s: f32 @ register
            s = 0.0
            for i in serial(1000):
                for j in serial(1000):
                    s += x[i, j]
            y[()] = s
        """)
    assert "parallel" not in text(scheduled(total))
    scan = kernel("""
        def k0(x: f32[1000, 1000], y: f32[1001, 1000]) -> y:
            for i in serial(1000):
                for j in serial(1000):
                    y[i + 1, j] = x[i, j] + y[i, j]
        """)
    assert parallel(scan, least=0.0) == scan


def test_the_pass_maps_over_kernels():
    k = vectorize(softmax(300, 100))
    after = Parallel().run(Program("p", (k,), (), (), None))
    assert after.kernels == (parallel(k, 4.0),)
