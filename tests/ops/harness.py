"""Does a composite mean what its ATen overload means? Decompose, run the meanings, compare with PyTorch.

    check_composite("add.Tensor", torch.ones(3), 2, alpha=3)

needs no compiler: only the registry.  `decompose_call` shows the primitives that a call becomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

import minicompile.ops  # noqa: F401  (fills the registry)
from minicompile.ir.graph import Node, TorchConst, Value
from minicompile.ir.types import TensorType, bf16, f16, from_torch, supported
from minicompile.ops.build import Builder, unwrap, wrap
from minicompile.ops.registry import COMPOSITES, PRIMITIVES, Kind
from minicompile.ops.samples import make

# PyTorch's vector and scalar paths disagree on the sign of a zero here, so it depends on the size:
CARELESS_OF_ZEROS = ("softshrink", "maximum", "minimum", "fmax", "fmin", "clamp.Tensor")
COMPUTING = (Kind.ELEMENTWISE, Kind.REDUCTION, Kind.CONTRACTION, Kind.SCAN)


@dataclass
class Decomposed:
    """What a call became: primitives, the values of its results, and the tensors it was given."""

    nodes: list[Node]
    outputs: tuple[Any, ...]
    inputs: dict[str, torch.Tensor]

    def __iter__(self) -> Any:
        return iter((self.nodes, self.outputs))


def decompose_call(
    overload: str, args: Sequence[Any], kwargs: dict[str, Any] | None = None
) -> Decomposed:
    """The primitives of ``torch.ops.aten.<overload>(*args, **kwargs)``; NotNative if it stays Extern."""
    inputs: dict[str, torch.Tensor] = {}

    def argument(a: Any) -> Any:
        if isinstance(a, torch.Tensor):
            name = f"x{len(inputs)}"
            inputs[name] = a
            return Value(name, TensorType(from_torch(a.dtype), tuple(a.shape)))
        if isinstance(a, torch.dtype):
            return from_torch(a) if supported(a) else TorchConst(repr(a))
        if isinstance(a, (torch.memory_format, torch.layout, torch.device)):
            return TorchConst(repr(a))
        if isinstance(a, (list, tuple)):
            return tuple(argument(x) for x in a)
        return a

    body = COMPOSITES[f"aten.{overload}"].body
    plain = [wrap(argument(a)) for a in args]
    named = {k: wrap(argument(v)) for k, v in (kwargs or {}).items()}
    with Builder("t") as b:
        result = body(*plain, **named)
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return Decomposed(b.nodes, unwrap(outputs), inputs)


def check_laws(node: Node) -> None:
    """Half floats never compute; operands lie in the primitive's domain."""
    entry = PRIMITIVES[node.op]
    if entry.kind not in COMPUTING or node.op == "cast":
        return
    for v in node.operands:
        assert v.type.dtype not in (f16, bf16), f"{node.op} computes in {v.type}"
        if node.op != "where":
            assert v.type.dtype.kind in entry.domain, f"{node.op} is not defined on {v.type}"


def execute(call: Decomposed) -> tuple[torch.Tensor, ...]:
    """Run the meanings; every result must have the type that `infer` promised."""
    env: dict[str, torch.Tensor] = dict(call.inputs)

    def value(a: Any) -> Any:
        if isinstance(a, Value):
            return env[a.name]
        return tuple(map(value, a)) if isinstance(a, tuple) else a

    for node in call.nodes:
        check_laws(node)
        attrs = {k: value(v) for k, v in node.attrs}
        result = PRIMITIVES[node.op].meaning(*map(value, node.args), **attrs)
        want = (tuple(node.out.type.dims), node.out.type.dtype.torch)
        assert (tuple(result.shape), result.dtype) == want, (
            f"{node.op}: {result.dtype}, not {node.out.type}"
        )
        env[node.out.name] = result
    return tuple(value(v) for v in call.outputs)


def check_composite(
    overload: str, *args: Any, values: bool = True, tolerance: dict[str, float] | None = None,
    **kwargs: Any,
) -> Decomposed:  # fmt: skip
    """Compare the decomposition of a call with PyTorch's own: dtypes, shapes, values, signs of zeros.

    `values=False` compares types only (``empty``); `tolerance` is {"rtol": ..., "atol": ...}.
    """
    want = operator(overload)(*args, **kwargs)
    wants = tuple(want) if isinstance(want, (tuple, list)) else (want,)
    call = decompose_call(overload, args, kwargs)
    gots = execute(call)
    assert len(gots) == len(wants), f"{overload} has {len(wants)} results, not {len(gots)}"
    for got, expect in zip(gots, wants):
        _same_type(overload, got, expect)
        if values:
            _same_values(overload, got, expect, tolerance or {})
    return call


def operator(overload: str) -> Any:
    """``torch.ops.aten.<overload>``."""
    name, _, version = overload.partition(".")
    return getattr(getattr(torch.ops.aten, name), version or "default")


def _same_type(overload: str, got: torch.Tensor, want: torch.Tensor) -> None:
    have, need = (tuple(got.shape), got.dtype), (tuple(want.shape), want.dtype)
    assert have == need, f"{overload}: {have} instead of {need}"


def _same_values(
    overload: str, got: torch.Tensor, want: torch.Tensor, tolerance: dict[str, float]
) -> None:
    torch.testing.assert_close(
        got, want, equal_nan=True, msg=lambda m: f"{overload}: {m}", **tolerance
    )
    if want.is_floating_point() and overload not in CARELESS_OF_ZEROS:
        zeros = (got == 0) & (want == 0)
        assert torch.equal(got[zeros].signbit(), want[zeros].signbit()), (
            f"{overload}: -0.0 and 0.0 are confused"
        )


def fits(overload: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Can the overload be called so? Entries share samples among overloads: ``add.Tensor``, ``.Scalar``."""
    schema = operator(overload)._schema.arguments
    by_name = {a.name: a for a in schema}
    pairs = [*zip(schema, args), *((by_name[k], v) for k, v in kwargs.items() if k in by_name)]
    if len(args) > len(schema) or set(kwargs) - set(by_name):
        return False
    needed = {a.name for a in schema[len(args) :] if not a.has_default_value()} - set(kwargs)
    return not needed and all(_accepts(str(a.type), v) for a, v in pairs)


def _accepts(type: str, value: Any) -> bool:
    """Is the value of a schema's type, as far as tensors, lists and numbers go?"""
    if value is None:
        return True
    if isinstance(value, list) != ("List" in type):
        return False
    return isinstance(value, list) or isinstance(value, torch.Tensor) == ("Tensor" in type)


def samples_of(overload: str) -> list[tuple[list[Any], dict[str, Any]]]:
    """The registry's samples that fit an overload, as tensors, dtypes and numbers (always the same)."""
    generator = torch.Generator().manual_seed(0)
    made = [
        (make(s.args, generator), {k: make(v, generator) for k, v in s.kwargs.items()})
        for s in COMPOSITES[f"aten.{overload}"].samples
    ]
    return [(args, kwargs) for args, kwargs in made if fits(overload, args, kwargs)]
