"""Comparison, logic and bits of ATen, and selection by a condition.

Comparisons promote their operands first, so f32 x == 0.1 compares with the f32 nearest to 0.1.
"""

from __future__ import annotations

from minicompile.errors import NotNative
from minicompile.ir.types import bool_, u8
from minicompile.ops import elementwise as el
from minicompile.ops.axes import reshaped
from minicompile.ops.build import Handle
from minicompile.ops.promote import (
    Operand,
    arithmetic,
    cast,
    common_dtype,
    constant,
    predicate,
    tensors,
)
from minicompile.ops.reducing import axes_of, count
from minicompile.ops.reduction import reduce_any
from minicompile.ops.registry import Emitter, composite, sample
from minicompile.ops.samples import bools, floats, ints

PAIRS = [
    sample(ints(3, 4), ints(4)),
    sample(ints(9), 1),
    sample(ints(9), 0.5),
    sample(floats(4), ints(4)),
    sample(bools(5), bools(5)),
]
_COMPARISONS = {
    "eq": (el.eq, "Is self equal to other? NaN is equal to nothing."),
    "ne": (el.ne, "Does self differ from other?"),
    "lt": (el.lt, "Is self less than other?"),
    "le": (el.le, "Is self at most other?"),
    "gt": (el.gt, "Is self greater than other?"),
    "ge": (el.ge, "Is self at least other?"),
}


def _register_comparison(name: str, compare: Emitter, doc: str) -> None:
    def body(self: Operand, other: Operand) -> Handle:
        return predicate(compare, self, other)

    body.__name__, body.__doc__ = name, doc
    composite(f"{name}.Tensor", f"{name}.Scalar", samples=PAIRS)(body)


for _name, (_compare, _doc) in _COMPARISONS.items():
    _register_comparison(_name, _compare, _doc)

# ------------------------------------------------------------------------------ logic


def truth(x: Operand) -> Handle | bool:
    """x != 0 (NaN is true)."""
    return cast(x, bool_) if isinstance(x, Handle) else bool(x)


@composite("logical_and", samples=PAIRS)
def logical_and(self: Operand, other: Operand) -> Handle:
    """self != 0 and other != 0."""
    return el.bitand(truth(self), truth(other))


@composite("logical_or", samples=PAIRS)
def logical_or(self: Operand, other: Operand) -> Handle:
    """self != 0 or other != 0."""
    return el.bitor(truth(self), truth(other))


@composite("logical_xor", samples=PAIRS)
def logical_xor(self: Operand, other: Operand) -> Handle:
    """Is exactly one of self and other not 0?"""
    return el.bitxor(truth(self), truth(other))


@composite("logical_not", samples=[sample(floats(3)), sample(ints(9)), sample(bools(5))])
def logical_not(self: Handle) -> Handle:
    """self == 0."""
    return el.bitnot(truth(self))


# ------------------------------------------------------------------------------ bits

_BITS = {
    "bitwise_and": (el.bitand, "Bitwise and of integers; logical and of bools."),
    "bitwise_or": (el.bitor, "Bitwise or of integers; logical or of bools."),
    "bitwise_xor": (el.bitxor, "Bitwise exclusive or of integers; logical of bools."),
}


def _register_bits(name: str, primitive: Emitter, doc: str) -> None:
    def body(self: Operand, other: Operand) -> Handle:
        return arithmetic(primitive, self, other)

    body.__name__, body.__doc__ = name, doc
    overloads = (f"{name}.{kind}" for kind in ("Tensor", "Scalar"))
    tensors = [sample(ints(3, 4), ints(4)), sample(bools(5), bools(5)), sample(ints(9), 6)]
    composite(*overloads, samples=tensors)(body)
    composite(f"{name}.Scalar_Tensor", samples=[sample(6, ints(9))])(body)


for _name, (_compare, _doc) in _BITS.items():
    _register_bits(_name, _compare, _doc)


@composite("bitwise_not", samples=[sample(ints(9)), sample(bools(5))])
def bitwise_not(self: Handle) -> Handle:
    """All bits flipped; on bools, not."""
    return el.bitnot(self)


@composite(
    "bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "__lshift__.Tensor",
    "__lshift__.Scalar",
    samples=[sample(ints(9), ints(9, low=0, high=70)), sample(ints(9), 3)],
)  # fmt: skip
def left_shift(self: Operand, other: Operand) -> Handle:
    """self * 2**other on integers; 0 when other is negative or not below the width."""
    return arithmetic(el.shl, self, other)


@composite(
    "bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "__rshift__.Tensor",
    "__rshift__.Scalar",
    samples=[sample(ints(9), ints(9, low=0, high=70)), sample(ints(9), 1)],
)  # fmt: skip
def right_shift(self: Operand, other: Operand) -> Handle:
    """floor(self / 2**other) on integers."""
    return arithmetic(el.shr, self, other)


composite("bitwise_left_shift.Scalar_Tensor", samples=[sample(3, ints(9))])(left_shift)
composite("bitwise_right_shift.Scalar_Tensor", samples=[sample(99, ints(9))])(right_shift)

# ------------------------------------------------------------------------------ classes of floats


@composite("isnan", samples=[sample(floats(4)), sample(ints(3))])
def isnan(self: Handle) -> Handle:
    """Is it NaN? Integers never are."""
    return predicate(el.isnan, self) if self.dtype.is_float else _never(self)


@composite("isinf", samples=[sample(floats(4)), sample(ints(3))])
def isinf(self: Handle) -> Handle:
    """Is it inf or -inf?"""
    return predicate(el.isinf, self) if self.dtype.is_float else _never(self)


@composite("isposinf", samples=[sample(floats(4)), sample(ints(3))])
def isposinf(self: Handle) -> Handle:
    """Is it inf?"""
    test = lambda x: el.eq(x, float("inf"))  # noqa: E731
    return predicate(test, self) if self.dtype.is_float else _never(self)


@composite("isneginf", samples=[sample(floats(4)), sample(ints(3))])
def isneginf(self: Handle) -> Handle:
    """Is it -inf?"""
    test = lambda x: el.eq(x, float("-inf"))  # noqa: E731
    return predicate(test, self) if self.dtype.is_float else _never(self)


@composite("signbit", samples=[sample(floats(4)), sample(ints(9)), sample(bools(3))])
def signbit(self: Handle) -> Handle:
    """Is the sign bit set? True for -0.0."""
    if self.dtype.is_float:
        return predicate(el.signbit, self)
    return self < 0 if self.dtype.kind == "i" else _never(self)


def _never(x: Handle) -> Handle:
    if x.dtype.kind == "c":
        raise NotNative("complex numbers are left to PyTorch")
    return constant(False, bool_, x.type.shape)


# ------------------------------------------------------------------------------ selection


@composite(
    "where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar",
    samples=[
        sample(bools(3, 4), floats(3, 4), floats(4)),
        sample(bools(4), floats(4), ints(4)),
        sample(bools(3, 1), floats(), ints(4)),
        sample(bools(3), 1, floats(3)),
        sample(bools(3), ints(3), 0.5),
        sample(bools(3), 1, 0.5),
    ],
)  # fmt: skip
def where(condition: Handle, self: Operand, other: Operand) -> Handle:
    """self where the condition holds, else other, in their result dtype."""
    if condition.dtype not in (bool_, u8):
        raise NotNative("the condition is neither bool nor uint8")
    dtype = common_dtype(self, other)
    if not isinstance(self, Handle) and not isinstance(other, Handle):
        self = constant(self, dtype)
    return arithmetic(lambda a, b: el.where(cast(condition, bool_), a, b), self, other, dtype=dtype)


@composite(
    "masked_fill.Scalar", "masked_fill.Tensor",
    samples=[sample(floats(3, 4), bools(4), -1.5), sample(ints(3, 4), bools(3, 1), 2), sample(floats(3, 4), bools(4), floats())],
)  # fmt: skip
def masked_fill(self: Handle, mask: Handle, value: Operand) -> Handle:
    """`value` where the mask holds, else self; the dtype stays."""
    if mask.dtype is not bool_:
        raise NotNative("the mask is not bool")
    pick = lambda x, v: el.where(mask, v, x)  # noqa: E731
    return arithmetic(pick, self, value, dtype=self.dtype)


@composite(
    "isin.Tensor_Tensor", "isin.Tensor_Scalar", "isin.Scalar_Tensor",
    samples=[sample(ints(3, 4), ints(2, 2)), sample(ints(9), 2, invert=True), sample(2, ints(5))],
)  # fmt: skip
def isin(
    elements: Operand, test_elements: Operand, assume_unique: bool = False, invert: bool = False
) -> Handle:
    """Is each element among the test elements? Compares all with all, so it is for few of these."""
    x, among = tensors(elements, test_elements)
    if count(among, axes_of(among, None)) > 64:
        raise NotNative("so many test elements are better sorted")
    column, row = reshaped(x, (*x.shape, 1)), reshaped(among, (count(among, axes_of(among, None)),))
    hit = reduce_any(predicate(el.eq, column, row), dims=(x.ndim,))
    return ~hit if invert else hit
