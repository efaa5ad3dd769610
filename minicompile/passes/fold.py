"""fold: what does not depend on any input is computed now.

The only constant of the Graph IR is `full` (one number everywhere), and all arithmetic on it goes through
the primitives' own meaning on a one-element tensor of the same dtype, so results are bit-exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from minicompile.ir.graph import Arg, Graph, Node, Value
from minicompile.ir.types import DType
from minicompile.ops.build import emit, wrap
from minicompile.ops.creation import full
from minicompile.ops.registry import PRIMITIVES, Kind, identity, kind_of
from minicompile.passes.base import Pass, register
from minicompile.passes.rewrite import Defs, Result, Rule, apply_rules, rule, same_number

Number = bool | int | float
EXACT_INTEGERS = {"f64": 2**53, "f32": 2**24}  # up to here every sum of integers is exact


@register
@dataclass(frozen=True)
class Fold(Pass):
    """Constants are folded, and become literal operands of elementwise ops.

    before:  t0: f32[] = full(shape=(), value=2.0, dtype=f32)
             t1: f32[] = sqrt(t0)
             t2: f32[4] = broadcast(t1, shape=(4,), dims=())
             t3: f32[4] = mul(x, t2)
    after:   t3: f32[4] = mul(x, 1.4142135381698608)     (and t0, t1, t2, dead)
    """

    name = "fold"
    verb = "folded"
    requires = ("ungrouped",)

    def run(self, graph: Graph) -> Graph:
        return apply_rules(graph, RULES)


def constant(a: Arg, defs: Defs) -> Number | None:
    """The number that `a` is everywhere, if it is a literal or a `full`."""
    if isinstance(a, (bool, int, float)):
        return a
    node = defs.of(a, "full")
    value = node.attr("value") if node is not None else None
    return value if isinstance(value, (bool, int, float)) else None


def as_dtype(value: Number, dtype: DType) -> Number:
    """The value as `dtype` holds it: 0.1 among f32 is 0.10000000149011612."""
    result: Number = torch.full((), value, dtype=dtype.torch).item()
    return result


def full_like(node: Node, value: Number) -> Result:
    return full(shape=node.out.type.shape, value=value, dtype=node.out.type.dtype)


@rule("full(0.1, f32) -> full(0.10000000149011612, f32)", "full")
def full_normal(node: Node, defs: Defs) -> Result:
    value = node.attr("value")
    if not isinstance(value, (bool, int, float)) or node.out.type.dtype.kind == "c":
        return None
    exact = as_dtype(value, node.out.type.dtype)
    same = type(exact) is type(value) and (same_number(value, exact) or exact != exact)
    return None if same else full_like(node, exact)


@rule("op(full(a), full(b)) -> full(op(a, b))")
def elementwise_full(node: Node, defs: Defs) -> Result:
    if kind_of(node.op) is not Kind.ELEMENTWISE or not all(
        _simple(v) for v in (*node.operands, node.out)
    ):
        return None
    numbers = [constant(a, defs) for a in node.args]
    if any(n is None for n in numbers):
        return None
    tensors = [
        torch.full((1,), n, dtype=a.type.dtype.torch)
        if isinstance(a, Value) and n is not None
        else n
        for a, n in zip(node.args, numbers)
    ]
    result: Any = PRIMITIVES[node.op].meaning(*tensors, **dict(node.attrs))
    return full_like(node, result.item())


def _simple(v: Value) -> bool:
    return v.type.dtype.kind != "c"


@rule("op(x, full(a)) -> op(x, a)")
def literal_operand(node: Node, defs: Defs) -> Result:
    """The first operand of `where` is a condition and stays; one operand must stay a tensor."""
    if kind_of(node.op) is not Kind.ELEMENTWISE or node.attrs:
        return None
    first = 1 if node.op == "where" else 0
    args = list(node.args)
    tensors = sum(isinstance(a, Value) for a in args[first:])
    for i in range(first, len(args)):
        value = constant(args[i], defs)
        if isinstance(args[i], Value) and value is not None and tensors > 1:
            args[i] = value
            tensors -= 1
    return None if tuple(args) == node.args else emit(node.op, *wrap(tuple(args)))


@rule("where(full(True), a, b) -> a", "where")
def where_constant(node: Node, defs: Defs) -> Result:
    cond = constant(node.args[0], defs)
    if cond is None:
        return None
    chosen = node.args[1 if cond else 2]
    if isinstance(chosen, Value):
        return chosen
    assert isinstance(chosen, (bool, int, float))
    return full_like(node, as_dtype(chosen, node.out.type.dtype))


@rule("layout(full(a)) -> full(a)")
def layout_full(node: Node, defs: Defs) -> Result:
    """Also `pad` by the same number, and `concat` of the same number."""
    if kind_of(node.op) is not Kind.LAYOUT:
        return None
    numbers = [constant(v, defs) for v in node.operands]
    if node.op == "pad":
        numbers.append(as_dtype(node.attr("value"), node.out.type.dtype))  # type: ignore[arg-type]
    first = numbers[0]
    if first is None or not all(same_number(n, first) for n in numbers):
        return None
    return full_like(node, first)


@rule("reduce_max(full(a)) -> full(a)", "reduce_max", "reduce_min", "reduce_any", "reduce_all")
def reduce_full(node: Node, defs: Defs) -> Result:
    value = constant(node.args[0], defs)
    return None if value is None or not _count(node) else full_like(node, value)


@rule("reduce_sum(full(a), n elements) -> full(a * n), where exact", "reduce_sum")
def sum_full(node: Node, defs: Defs) -> Result:
    value, n, dtype = constant(node.args[0], defs), _count(node), node.out.type.dtype
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    if dtype.is_float:
        exact = float(value).is_integer() and abs(value) * n <= EXACT_INTEGERS.get(dtype.name, 0)
        return full_like(node, float(value) * n) if exact and value != 0 else None
    bits = 8 * dtype.bytes
    total = int(value) * n & ((1 << bits) - 1)  # integers wrap around
    return full_like(
        node, total - (1 << bits) if dtype.kind == "i" and total >> (bits - 1) else total
    )


@rule(
    "reduce(x of no elements) -> full(identity)",
    "reduce_sum",
    "reduce_prod",
    "reduce_any",
    "reduce_all",
)
def reduce_nothing(node: Node, defs: Defs) -> Result:
    if _count(node):
        return None
    return full_like(node, identity(PRIMITIVES[node.op].combine, node.out.type.dtype))


def _count(node: Node) -> int:
    """How many elements go into one result."""
    (x,) = node.operands
    return math.prod(x.type.dims[d] for d in node.ints("dims"))


@rule("iota(dim of size 1) -> full(0)", "iota")
def iota_one(node: Node, defs: Defs) -> Result:
    (dim,) = node.ints("dim")
    return full_like(node, 0) if node.out.type.dims[dim] == 1 else None


RULES: tuple[Rule, ...] = (
    full_normal, iota_one, where_constant, elementwise_full, literal_operand, layout_full, reduce_full,
    sum_full, reduce_nothing,
)  # fmt: skip
