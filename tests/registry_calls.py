"""Calls of the registry's ops, many in one compiled function: compiling 10 at once costs half as much.

A `Call` is an overload with arguments.  `check_together` compiles a list of calls as one function and
compares each result with eager; if that fails, each call is compiled alone, so that failures have names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

import minicompile as mc
from minicompile.ir.loop import ExternCall
from minicompile.ops.registry import COMPOSITES
from minicompile.ops.samples import TensorRecipe, make
from tests.ops.harness import fits, operator

OVERLOADS = [o.removeprefix("aten.") for o in COMPOSITES]
# Their elements are whatever the memory held:
UNDEFINED = tuple(o for o in OVERLOADS if "empty" in o)
# A sum of rounded products may end one step of the result's dtype further:
TOLERANCE = {
    torch.bfloat16: {"rtol": 2**-7, "atol": 2**-9},
    torch.float16: {"rtol": 2**-10, "atol": 2**-12},
}


@dataclass(frozen=True)
class Call:
    """``torch.ops.aten.<overload>(*args, **kwargs)``; `name` says which one it is."""

    overload: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """The result with these tensors in place of its own."""
        leaves, structure = tree_flatten((list(self.args), self.kwargs))
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, torch.Tensor) else x for x in leaves]
        args, kwargs = tree_unflatten(leaves, structure)
        return operator(self.overload)(*args, **kwargs)

    @property
    def tensors(self) -> list[torch.Tensor]:
        leaves = tree_leaves((list(self.args), self.kwargs))
        return [x for x in leaves if isinstance(x, torch.Tensor)]

    def with_tensors(self, change: Any) -> Call:
        """The same call with `change` applied to every tensor."""
        args, kwargs = tree_map(
            lambda x: change(x) if isinstance(x, torch.Tensor) else x,
            (list(self.args), self.kwargs),
        )
        return Call(self.overload, self.name, tuple(args), kwargs)

    def in_float64(self) -> Any:
        """The result in double precision; None if there is no such thing."""
        return self.with_tensors(lambda t: t.double() if t.is_floating_point() else t).eager()

    def eager(self) -> Any:
        """What PyTorch gives; None if it refuses these arguments."""
        try:
            return self(*self.tensors)
        except (RuntimeError, IndexError, TypeError, ValueError):
            return None


def calls_of(overload: str, change: Any = lambda recipe: recipe) -> list[Call]:
    """The samples of an overload that fit its schema; `change` maps the recipes of their tensors."""
    generator = torch.Generator().manual_seed(0)

    def real(a: Any) -> Any:
        if isinstance(a, (tuple, list)):
            return [real(x) for x in a]
        return make(change(a) if isinstance(a, TensorRecipe) else a, generator)

    calls = []
    for n, s in enumerate(COMPOSITES[f"aten.{overload}"].samples):
        args, kwargs = real(s.args), {k: real(v) for k, v in s.kwargs.items()}
        if fits(overload, args, kwargs):
            calls.append(Call(overload, f"{overload}-{n}", tuple(args), kwargs))
    return calls


def check_together(calls: Sequence[Call], native: bool = False) -> None:
    """Compare compiled results with eager's. `native`: no call may be left to PyTorch."""
    try:
        _check(calls, native)
    except Exception:
        if len(calls) == 1:
            raise
        for call in calls:
            check_alone(call, native)
        raise


def check_alone(call: Call, native: bool) -> None:
    try:
        _check([call], native)
    except Exception as e:
        shapes = [(str(t.dtype).removeprefix("torch."), tuple(t.shape)) for t in call.tensors]
        raise AssertionError(f"{call.name} on {shapes}: {e}") from e


def _check(calls: Sequence[Call], native: bool) -> None:
    def together(*tensors: torch.Tensor) -> list[Any]:
        given = iter(tensors)
        return [call(*[next(given) for _ in call.tensors]) for call in calls]

    tensors = [t for call in calls for t in call.tensors]
    compiled = mc.compile(together, fullgraph=True)
    got = compiled(*tensors)
    for call, have in zip(calls, got, strict=True):
        compare(call, have, call(*call.tensors))
    if native:
        left = [c.node.op for c in compiled.stages["buffers"].ir.calls if isinstance(c, ExternCall)]
        assert not left, f"left to PyTorch: {left}"


def compare(call: Call, got: Any, want: Any) -> None:
    """Same structure, dtypes, shapes and strides; values as close as torch.testing wants them, or as close
    to those in float64 as eager's are."""
    exact = tree_leaves(call.in_float64())
    for n, (a, b) in enumerate(zip(tree_leaves(got), tree_leaves(want), strict=True)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{call.name}: {a.dtype}{list(a.shape)}"
        dims = [d for d in range(b.dim()) if b.shape[d] > 1 and b.numel()]
        assert all(a.stride(d) == b.stride(d) for d in dims), (
            f"{call.name}: strides {a.stride()} instead of {b.stride()}"
        )
        if call.overload in UNDEFINED or (exact and closer(a, b, exact[n])):
            continue
        torch.testing.assert_close(
            a, b, equal_nan=True, msg=lambda m: f"{call.name}: {m}", **TOLERANCE.get(b.dtype, {})
        )


def closer(a: torch.Tensor, b: torch.Tensor, exact: torch.Tensor) -> bool:
    """Is `a` nowhere further from the exact values than twice the worst of `b`?"""
    if not a.is_floating_point() or a.shape != exact.shape or not a.numel():
        return False
    mine, eager = (a.double() - exact).abs().amax(), (b.double() - exact).abs().amax()
    return bool(mine <= 2 * eager)  # False if there are NaNs
