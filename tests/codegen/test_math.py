"""Errors of the vector functions in ulp, and their values at the edges, against float64.

``python -m tests.codegen.test_math`` prints the table: function, largest error, nanoseconds per element.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

import pytest
import torch

from tests.codegen.harness import compiled, kernel_of, program_of

N = 1 << 16
# name: (interval, largest error allowed in ulp)
FUNCTIONS: dict[str, tuple[float, float, float]] = {
    "exp": (-104, 89, 1.1),
    "exp2": (-150, 128, 1.2),
    "expm1": (-20, 89, 2),
    "tanh": (-10, 10, 2.5),
    "erf": (-4.5, 4.5, 1.5),
    "log": (0, 100, 1.1),
    "log2": (0, 100, 2),
    "log10": (0, 100, 2),
    "log1p": (-1, 100, 2),
    "sin": (-1e5, 1e5, 2.5),
    "cos": (-1e5, 1e5, 2.5),
    "tan": (-1e4, 1e4, 4.5),
    "asin": (-1, 1, 2.5),
    "acos": (-1, 1, 2.5),
    "sinh": (-89, 89, 2.5),
    "cosh": (-89, 89, 2.5),
    "asinh": (-100, 100, 3),
    "acosh": (1, 100, 3),
    "atanh": (-1, 1, 3),
    "sqrt": (0, 100, 0.51),
    "rsqrt": (0, 100, 1.5),
    "atan": (-10, 10, 2.5),
    "erfc": (-4, 9, 3),
    "lgamma": (0.5, 50, 4),
}
EDGES = [
    0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 1e-45, -1e-45, 1e-40, -1e-40,
    1.1754944e-38, 3.4028235e38, -3.4028235e38, 88.7, 88.73, 89.5, -87.4, -103.9, -104.1, 128.0,
    -149.0, -150.0, 1e-8, -1e-8, 1e6, 1e10, 1e30,
]  # fmt: skip


def kernel_text(name: str, dtype: str, size: int, vector: bool) -> str:
    header = f"def k0(x: {dtype}[{size}], y: {dtype}[{size}]) -> y:\n"
    if not vector:
        return header + f"    for i in serial({size}):\n        y[i] = {name}(x[i])\n"
    return header + (
        f"    for i in serial({size // 16}):\n"
        "        for v in vector(16):\n"
        f"            y[i * 16 + v] = {name}(x[i * 16 + v])\n"
    )


def function(
    name: str, dtype: str = "f32", size: int = N, vector: bool = True
) -> Callable[..., torch.Tensor]:
    run = compiled(program_of(kernel_of(kernel_text(name, dtype, size, vector))))
    return lambda x: run([x], [])[0]


def inputs(low: float, high: float) -> torch.Tensor:
    """Half of them even, half logarithmic towards 0, inside the interval."""
    even = torch.rand(N // 2) * (high - low) + low
    sign = torch.where(torch.rand(N // 2) < 0.5, low, high)
    return torch.cat([even, sign * torch.exp(-20 * torch.rand(N // 2))]).clamp(low, high)


def ulps(got: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """abs(got - exact) in units of the last place of f32 at `exact`."""
    near = exact.float().abs()
    unit = (torch.nextafter(near, torch.tensor(float("inf"))) - near).double()
    error = (got.double() - exact).abs() / unit
    return error[torch.isfinite(unit) & torch.isfinite(got)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name: str) -> None:
    low, high, allowed = FUNCTIONS[name]
    x = inputs(low, high)
    error = ulps(function(name)(x), getattr(torch, name)(x.double()))
    assert error.max() <= allowed, f"{name}: {error.max():.2f} ulp"


@pytest.mark.parametrize("vector", [True, False], ids=["vector", "scalar"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name: str, vector: bool) -> None:
    x = torch.tensor(EDGES + [1.0] * (32 - len(EDGES)))
    got, want = function(name, size=32, vector=vector)(x), getattr(torch, name)(x)
    assert torch.equal(got.isnan(), want.isnan()), f"{got}\n{want}"
    exact = getattr(torch, name)(x.double())
    same_sign = (got.signbit() == exact.signbit()) | got.isnan()
    assert same_sign.all(), f"{x[~same_sign]} {got[~same_sign]}"
    infinite = exact.float().isinf()  # PyTorch overflows a little early in sinh and cosh
    assert torch.equal(got.isinf(), infinite), f"{x[got.isinf() != infinite]}"
    assert ulps(got, exact).max() <= max(FUNCTIONS[name][2], 1.0)


def main() -> None:
    torch.set_num_threads(1)
    x = torch.randn(4096) * 3
    for name, (low, high, _) in FUNCTIONS.items():
        wide = inputs(low, high)
        error = ulps(function(name)(wide), getattr(torch, name)(wide.double())).max()
        f, g = function(name, size=4096), getattr(torch, name)
        times = [min(timeit.repeat(lambda h=h: h(x), number=200, repeat=9)) / 200 for h in (f, g)]
        ns = [t / x.numel() * 1e9 for t in times]
        print(f"{name:8} {error:5.2f} ulp   {ns[0]:6.2f} ns, torch {ns[1]:6.2f} ns")


if __name__ == "__main__":
    main()
