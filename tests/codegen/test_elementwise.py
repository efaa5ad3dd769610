"""Every elementwise primitive on every dtype of its domain, scalar and vector, against PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

import minicompile.ops  # noqa: F401  (fills the registry)
from minicompile.ir.index import ix
from minicompile.ir.loop import Call, Expr, For, Kernel, Load, Param, Stmt, Store
from minicompile.ir.types import DTYPES, DType, TensorType, bool_
from minicompile.ops.registry import PRIMITIVES, Kind, Primitive
from tests.codegen.harness import compiled, program_of

FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 0.3, -0.7, 7.25, -7.25, 100.0, 1e-3, 1e10,
    -1e10, 3e38, 1e-40, float("inf"), -float("inf"), float("nan"), 2147483648.0, -2147483648.0,
]  # fmt: skip
SIZE = 16 * 40
# primitives whose second argument an integer test must keep from being 0: PyTorch raises there
DIVISIONS = ("floor_div", "trunc_div", "remainder", "fmod")
ELEMENTWISE = [
    p for p in PRIMITIVES.values() if p.kind is Kind.ELEMENTWISE and p.name not in ("where", "cast")
]
COMPUTING = [d for d in DTYPES.values() if d.kind != "c" and d.name not in ("f16", "bf16")]


def operands(dtype: DType) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of special values, cut or padded to SIZE."""
    if dtype.is_float:
        values = FLOATS
    elif dtype is bool_:
        values = [False, True]
    else:
        info = torch.iinfo(dtype.torch)
        values = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, 64, 31, 8, 100]
        values += [-1, -2, -3, -7, -100] if info.min < 0 else []
    pairs = list(itertools.islice(itertools.cycle(itertools.product(values, repeat=2)), SIZE))
    a, b = zip(*pairs)
    return torch.tensor(a, dtype=dtype.torch), torch.tensor(b, dtype=dtype.torch)


def divisors(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """b without what stops PyTorch: division by zero raises, the most negative number / -1 crashes."""
    b = torch.where(b == 0, torch.ones_like(b), b)
    if a.dtype in (torch.bool, torch.uint8):
        return b
    return torch.where((a == torch.iinfo(a.dtype).min) & (b == -1), torch.ones_like(b), b)


def careless(name: str, a: torch.Tensor, b: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """Where PyTorch's own answer depends on its code path: the sign of an extreme zero (scalar and vector
    code differ), and remainders where a / b overflows (NaN from its vector code)."""
    if name in ("maximum", "minimum"):
        return want == 0
    if name in ("fmod", "remainder", "floor_div") and want.is_floating_point():
        return ((a / b).abs() > 1e9) & torch.isfinite(a) & (b != 0)
    return torch.zeros_like(want, dtype=torch.bool)


def arity(p: Primitive) -> int:
    """How many operands the primitive takes: the first number its type rule and meaning accept."""
    x = torch.ones(1, dtype=torch.float64 if p.domain == "f" else torch.int64)
    try:
        p.meaning(x)
    except TypeError:
        return 2
    return 1


def result_type(p: Primitive, dtype: DType) -> DType:
    return p.infer(*[TensorType(dtype, (1,))] * arity(p)).dtype


def kernel(
    expressions: list[tuple[str, DType, Callable[[tuple[Expr, ...]], Expr]]], dtype: DType
) -> Kernel:
    """Every expression of a[i] and b[i], in a serial loop (NAME_s) and in vector loops (NAME_v)."""

    def stores(index: object, suffix: str) -> tuple[Stmt, ...]:
        args = tuple(Load(x, (index,), dtype) for x in "ab")  # type: ignore[arg-type]
        return tuple(Store(f"{n}_{suffix}", (index,), f(args)) for n, _, f in expressions)  # type: ignore[arg-type]

    wide = ix(("i", 16), "v")
    body = (
        For("j", SIZE, "serial", stores(ix("j"), "s")),
        For("i", SIZE // 16, "serial", (For("v", 16, "vector", stores(wide, "v")),)),
    )
    params = [Param(x, TensorType(dtype, (SIZE,))) for x in "ab"]
    params += [Param(f"{n}_{s}", TensorType(d, (SIZE,))) for n, d, _ in expressions for s in "sv"]
    return Kernel("k0", tuple(params), 2 * len(expressions), body)


def compare(
    name: str, got: torch.Tensor, want: torch.Tensor, a: torch.Tensor, b: torch.Tensor
) -> None:
    if want.is_floating_point():
        same = (got == want) & (got.signbit() == want.signbit()) | (got.isnan() & want.isnan())
        near = torch.isclose(got, want, rtol=1e-6 if want.dtype is torch.float32 else 1e-12, atol=0)
        near &= ~(got == 0)
        tiny = (
            (want.abs() < 1.2e-38) & ((got - want).abs() < 1e-44)
            if want.dtype is torch.float32
            else same
        )
        bad = ~(same | near | tiny | careless(name, a, b, want))
    else:
        bad = got != want
    assert not bad.any(), (
        f"{name}: of {a[bad][:5]} and {b[bad][:5]}: {got[bad][:5]}, not {want[bad][:5]}"
    )


@pytest.mark.parametrize("dtype", COMPUTING, ids=str)
def test_primitives(dtype: DType) -> None:
    a, b = operands(dtype)
    inside = [p for p in ELEMENTWISE if dtype.kind in p.domain]
    if not dtype.is_float:
        b = divisors(a, b)

    def of(p: Primitive) -> Callable[[tuple[Expr, ...]], Expr]:
        return lambda args: Call(p.name, args[: arity(p)], result_type(p, dtype))

    run = compiled(
        program_of(kernel([(p.name, result_type(p, dtype), of(p)) for p in inside], dtype))
    )
    results = iter(run([a, b], []))
    for p in inside:
        wanted = p.meaning(*(a, b)[: arity(p)])
        for _ in "sv":
            compare(p.name, next(results), wanted, a, b)


@pytest.mark.parametrize("source", [d for d in DTYPES.values() if d.kind != "c"], ids=str)
def test_casts(source: DType) -> None:
    a, b = operands(source)
    targets = [d for d in DTYPES.values() if d.kind != "c" and d is not source]

    def to(d: DType) -> Callable[[tuple[Expr, ...]], Expr]:
        return lambda args: Call("cast", args[:1], d)

    run = compiled(program_of(kernel([(f"to_{d}", d, to(d)) for d in targets], source)))
    results = iter(run([a, b], []))
    for d in targets:
        for _ in "sv":
            compare(f"{source} -> {d}", next(results), a.to(d.torch), a, b)


@pytest.mark.parametrize("dtype", [d for d in COMPUTING if d.is_integer], ids=str)
def test_division_by_zero_gives_zero(dtype: DType) -> None:
    a, _ = operands(dtype)

    def of(name: str) -> Callable[[tuple[Expr, ...]], Expr]:
        return lambda args: Call(name, args, dtype)

    run = compiled(program_of(kernel([(n, dtype, of(n)) for n in DIVISIONS], dtype)))
    for result in run([a, torch.zeros_like(a)], []):
        assert (result == 0).all()
