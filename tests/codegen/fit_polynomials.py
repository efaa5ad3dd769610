"""Where the coefficients of codegen/vector_math.py come from: ``python -m tests.codegen.fit_polynomials``.

Each is a minimax fit in float64: weighted least squares, the weights moved towards the largest errors
(Lawson's algorithm), one coefficient after the other rounded to f32 and the rest fitted again.
Prints, for each polynomial, the largest relative error in units of 2**-24 (half an ulp of f32).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]


def fit(
    f: Function, weight: Function, low: float, high: float, powers: list[int]
) -> dict[int, float]:
    """Coefficients by power; minimises max |polynomial - f| * weight over [low, high]."""
    k = np.arange(4000)
    x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (k + 0.5) / k.size)
    done: dict[int, float] = {}
    while len(done) < len(powers):
        rest = [p for p in powers if p not in done]
        target = f(x) - sum(c * x**p for p, c in done.items())
        done[rest[0]] = float(np.float32(_lawson(x, target, weight(x), rest)[0]))
    return done


def _lawson(x: np.ndarray, y: np.ndarray, weight: np.ndarray, powers: list[int]) -> np.ndarray:
    a, moving = np.stack([x**p for p in powers], 1), np.ones(x.size)
    for _ in range(60):
        scale = np.sqrt(moving) * weight
        c = np.linalg.lstsq(a * scale[:, None], y * scale, rcond=None)[0]
        error = np.abs((a @ c - y) * weight)
        moving = moving * error / error.mean() + 1e-12
        moving /= moving.mean()
    return c


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


def _erfc(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erfc)(x)


def _one(x: np.ndarray) -> np.ndarray:
    return np.ones_like(x)


def _remainder(f: Function, terms: list[float], power: int) -> Function:
    """(f(x) - terms[0] - terms[1] x - ...) / x**power, by series where x is near 0."""

    def g(x: np.ndarray) -> np.ndarray:
        wide = x.astype(np.longdouble)
        rest = f(wide) - sum(np.longdouble(c) * wide**n for n, c in enumerate(terms))
        return (rest / wide**power).astype(float)

    return g


FITS: dict[str, tuple[Function, Function, float, float, int]] = {
    # name: (function, weight of an error, low, high, number of coefficients)
    "exp: (e**r - 1 - r) / r**2": (
        _remainder(np.exp, [1.0, 1.0], 2), lambda r: r * r / np.exp(r), -0.3466, 0.3466, 5),
    "expm1: (e**r - 1 - r) / r**2": (
        _remainder(np.exp, [1.0, 1.0], 2), lambda r: r * r / np.expm1(r), -0.3466, 0.3466, 6),
    "log: (log(1+f) - f + f**2/2) / f**3": (
        _remainder(np.log1p, [0.0, 1.0, -0.5], 3), lambda f: f**3 / np.log1p(f), -0.2929, 0.4143, 9),
    "sin: (sin(r) - r) / r**3 in s = r*r": (
        lambda s: (np.sin(np.sqrt(s)) - np.sqrt(s)) / np.sqrt(s) ** 3,
        lambda s: np.sqrt(s) ** 3 / np.sin(np.sqrt(s)), 1e-3, 2.47, 4),
    "atan: (atan(z) - z) / z**3 in s = z*z": (
        lambda s: (np.arctan(np.sqrt(s)) - np.sqrt(s)) / np.sqrt(s) ** 3,
        lambda s: np.sqrt(s) ** 3 / np.arctan(np.sqrt(s)), 1e-3, 1.0, 8),
    "asin: (asin(z) - z) / z**3 in s = z*z": (
        lambda s: (np.arcsin(np.sqrt(s)) - np.sqrt(s)) / np.sqrt(s) ** 3,
        lambda s: np.sqrt(s) ** 3 / np.arcsin(np.sqrt(s)), 1e-3, 0.25, 5),
    "erf: erf(x)/x - 1 in s = x*x": (
        lambda s: _erf(np.sqrt(s)) / np.sqrt(s) - 1,
        lambda s: np.sqrt(s) / _erf(np.sqrt(s)), 1e-9, 0.92**2, 6),
    "erf: log(erfc(t)) / t": (
        lambda t: np.log(_erfc(t)) / t, lambda t: _erfc(t) * t / _erf(t), 0.92, 3.95, 6),
}  # fmt: skip


def main() -> None:
    for name, (f, weight, low, high, count) in FITS.items():
        c = fit(f, weight, low, high, list(range(count)))
        x = np.linspace(low, high, 4000)
        error = np.max(np.abs((sum(v * x**p for p, v in c.items()) - f(x)) * weight(x)))
        print(f"{name}: {error / 2**-24:.2f} * 2**-24")
        print("   ", ", ".join(f"{v:.9g}" for v in reversed(c.values())))


if __name__ == "__main__":
    main()
