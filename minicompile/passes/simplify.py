"""simplify: algebraic laws that keep every value, to the last bit.

Not among them, since they are wrong for some float: x + 0 -> x (-0.0 + 0.0 is 0.0), x * 0 -> 0 (NaN, inf,
-0.0), x - x -> 0 (NaN, inf), x / x -> 1 (NaN, inf, 0), x / 3 -> x * (1/3) (rounds twice),
(x + a) - a -> x, not (a < b) -> a >= b (NaN), a sum in another order.
In PyTorch Inductor some of these come with `fast math`; here no result changes unless asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from minicompile.ir.graph import Graph, Node, Value
from minicompile.ir.types import DType, bf16, f16, f32, f64
from minicompile.ops.build import Handle, emit, wrap
from minicompile.ops.elementwise import cast
from minicompile.passes.base import Pass, register
from minicompile.passes.rewrite import Defs, Result, Rule, apply_rules, law, rule, same_number
from minicompile.passes.simplify_layout import LAYOUT_RULES


@register
@dataclass(frozen=True)
class Simplify(Pass):
    """Apply the laws of this file (and of simplify_layout) until none fires.

    before:  t0: f32[4] = mul(x, 1.0)
             t1: f32[2, 2] = reshape(t0, shape=(2, 2))
             t2: f32[4] = reshape(t1, shape=(4,))
             t3: f32[4] = div(t2, 4.0)
    after:   t3: f32[4] = mul(x, 0.25)                     (and t0, t1, t2, dead)
    """

    name = "simplify"
    verb = "simplified"
    requires = ("ungrouped",)

    def run(self, graph: Graph) -> Graph:
        return apply_rules(graph, RULES)


# ---------------------------------------------------------------------------------- pure laws

LAWS: tuple[Rule, ...] = (
    law("mul_one", "mul(x, 1) -> x"),
    law("one_mul", "mul(1, x) -> x"),
    law("div_one", "div(x, 1) -> x"),
    law("sub_zero", "sub(x, 0) -> x"),  # also for x = -0.0: -0.0 - 0.0 is -0.0
    law("pow_one", "pow(x, 1) -> x"),
    law("neg_neg", "neg(neg(x)) -> x"),
    law("sub_neg", "sub(x, neg(y)) -> add(x, y)"),
    law("add_neg", "add(x, neg(y)) -> sub(x, y)"),
    law("abs_neg", "abs(neg(x)) -> abs(x)"),
    law("abs_abs", "abs(abs(x)) -> abs(x)"),
    law("not_not", "bitnot(bitnot(x)) -> x"),
    law("not_eq", "bitnot(eq(x, y)) -> ne(x, y)"),  # holds for NaN, too
    law("not_ne", "bitnot(ne(x, y)) -> eq(x, y)"),
    law("and_self", "bitand(x, x) -> x"),
    law("or_self", "bitor(x, x) -> x"),
    law("and_true", "bitand(x, True) -> x"),
    law("true_and", "bitand(True, x) -> x"),
    law("or_false", "bitor(x, False) -> x"),
    law("false_or", "bitor(False, x) -> x"),
    law("max_self", "maximum(x, x) -> x"),
    law("min_self", "minimum(x, x) -> x"),
    law("where_same", "where(c, x, x) -> x"),
    law("where_not", "where(bitnot(c), x, y) -> where(c, y, x)"),
)


# ---------------------------------------------------------------------------------- with conditions


@rule("add(x, 0) -> x for integers, add(x, -0.0) -> x for floats", "add")
def add_zero(node: Node, defs: Defs) -> Result:
    zero = -0.0 if node.out.type.dtype.is_float else 0
    x, y = node.args
    for a, b in ((x, y), (y, x)):
        if isinstance(a, Value) and not isinstance(b, Value) and _zero(b, zero):
            return a
    return None


def _zero(a: object, zero: int | float) -> bool:
    return isinstance(a, (int, float)) and same_number(a, zero)


@rule("div(x, c) -> mul(x, 1/c), if c is a power of two", "div")
def div_power_of_two(node: Node, defs: Defs) -> Result:
    """Both are exact up to the same final rounding, as long as 1/c is a normal number."""
    x, c = node.args
    if not isinstance(x, Value) or not isinstance(c, (int, float)) or not c or not math.isfinite(c):
        return None
    mantissa, exponent = math.frexp(abs(c))
    if mantissa != 0.5 or abs(exponent) > 120 or x.type.dtype not in (f32, f64):
        return None
    return Handle(x) * (1.0 / c)


@rule("cast(x, its own dtype) -> x", "cast")
def cast_same(node: Node, defs: Defs) -> Result:
    (x,) = node.operands
    return x if x.type.dtype is node.attr("dtype") else None


@rule("cast(cast(x, b), c) -> cast(x, c), if x -> b loses nothing", "cast")
def cast_cast(node: Node, defs: Defs) -> Result:
    inner = defs.of(node.args[0], "cast")
    if inner is None:
        return None
    (x,) = inner.operands
    a, b, c = x.type.dtype, inner.out.type.dtype, node.out.type.dtype
    if not lossless(a, b):
        return None
    if a.is_integer and b.is_float and c.is_integer and a is not c:
        return None  # an integer out of range wraps around, a float out of range does not
    return cast(wrap(x), dtype=c)


def lossless(a: DType, b: DType) -> bool:
    """Does every value of dtype a survive in dtype b?"""
    if a is b or a.kind == "b":
        return True
    if b.kind == "b" or "c" in a.kind + b.kind:
        return False
    if a.is_float:
        return b.is_float and _digits(a) <= _digits(b) and (a, b) != (f16, bf16)
    if b.is_float:
        return 8 * a.bytes - (a.kind == "i") <= _digits(b)
    return b.bytes > a.bytes and (a.kind == "u" or b.kind == "i")


def _digits(d: DType) -> int:
    """Binary digits of a float's significand, the hidden one included."""
    return {bf16: 8, f16: 11, f32: 24, f64: 53}[d]


@rule("mul(neg(x), c) -> mul(x, -c)", "mul", "div")
def neg_constant(node: Node, defs: Defs) -> Result:
    x, c = node.args
    inner = defs.of(x, "neg")
    if inner is None or not isinstance(c, float):
        return None
    return emit(node.op, wrap(inner.args[0]), -c)


RULES: tuple[Rule, ...] = (
    *LAWS, add_zero, div_power_of_two, cast_same, cast_cast, neg_constant, *LAYOUT_RULES,
)  # fmt: skip
