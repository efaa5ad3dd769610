"""Loads and stores of generated code.

    x[i]                                    one element; x[i] = v stores one
    load(x, i)             store(x, i, v)   16 elements in a row, from element i on
    load_strided(x, i, s)  store_strided    elements i, i + s, i + 2*s, ...
    gather(x, j)           scatter(x, j, v) the elements whose numbers are the lanes of j
    accumulate_add(x, j, v), ..._max, ...   x[j] += v lane after lane: equal numbers add up

All but x[i] take a mask as their last argument: lanes where it is false are neither read nor written;
a load gives 0 there.  Element numbers are i64 or Python integers.  Vectors need no more alignment
than one element does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace

from llvmlite import ir as llvm

from minicompile.codegen.numba_types import vector_function
from minicompile.codegen.register import (
    CONVERT,
    LANES,
    OPERATORS,
    Pointer,
    Register,
    call_function,
    lane_numbers,
    memory_type,
    suffix,
)
from minicompile.codegen.vector_ops import maximum, minimum
from minicompile.ir.types import DType, bool_, i32, i64


def _in_register(p: Pointer, value: llvm.Value, lanes: int) -> Register:
    """A value as loaded from memory; bool is a byte there, anything but 0 is true."""
    if p.dtype is not bool_:
        return Register(p.builder, value, p.dtype, lanes)
    zero = llvm.Constant(value.type, None)
    return Register(p.builder, p.builder.icmp_unsigned("!=", value, zero), p.dtype, lanes)


def _in_memory(p: Pointer, v: Register, lanes: int) -> llvm.Value:
    """The value to store: of the pointer's dtype, in `lanes` lanes, bool as bytes."""
    if v.weak:
        v = CONVERT["cast"](v, p.dtype)
    if v.dtype is not p.dtype or v.lanes not in (1, lanes):
        raise TypeError(f"{v.lanes} {v.dtype} stored as {lanes} {p.dtype}")
    v = v.splat(lanes)
    if p.dtype is not bool_:
        return v.value
    byte = llvm.IntType(8)
    return p.builder.zext(v.value, byte if lanes == 1 else llvm.VectorType(byte, lanes))


def _vector(p: Pointer) -> llvm.Type:
    return llvm.VectorType(memory_type(p.dtype), LANES)


def _masked(
    p: Pointer, name: str, where: str, args: list[llvm.Value], result: llvm.Type
) -> llvm.Value:
    """llvm.masked.NAME: overloaded on the vector's type and on the address's (p0, v16p0)."""
    name = f"llvm.masked.{name}.{suffix(_vector(p))}.{where}"
    return call_function(p.builder, name, result, args)


def _align(p: Pointer) -> llvm.Constant:
    return llvm.Constant(llvm.IntType(32), p.dtype.bytes)


@vector_function(operator.getitem)
def element(p: Pointer, i: Register) -> Register:
    return _in_register(p, p.builder.load(p.at(i), align=p.dtype.bytes), 1)


@vector_function(operator.setitem)
def set_element(p: Pointer, i: Register, v: Register) -> None:
    p.builder.store(_in_memory(p, v, 1), p.at(i), align=p.dtype.bytes)


@vector_function()
def load(p: Pointer, i: Register, mask: Register | None = None) -> Register:
    if mask is None:
        return _in_register(p, p.builder.load(p.vector_at(i), align=p.dtype.bytes), LANES)
    args = [p.vector_at(i), _align(p), mask.value, llvm.Constant(_vector(p), None)]
    return _in_register(p, _masked(p, "load", "p0", args, _vector(p)), LANES)


@vector_function()
def store(p: Pointer, i: Register, v: Register, mask: Register | None = None) -> None:
    value = _in_memory(p, v, LANES)
    if mask is None:
        p.builder.store(value, p.vector_at(i), align=p.dtype.bytes)
    else:
        args = [value, p.vector_at(i), _align(p), mask.value]
        _masked(p, "store", "p0", args, llvm.VoidType())


def _addresses(p: Pointer, j: Register) -> llvm.Value:
    """16 addresses: the base plus j elements, as integers first (llvmlite's gep knows no vectors)."""
    b = p.builder
    base = Register(b, b.ptrtoint(p.value, llvm.IntType(64)), i64, 1)
    t = llvm.VectorType(memory_type(p.dtype).as_pointer(), LANES)
    return b.inttoptr((j * p.dtype.bytes + base).value, t)


def _all_lanes(mask: Register | None, j: Register) -> llvm.Value:
    return j.number(True, bool_).value if mask is None else mask.value


@vector_function()
def gather(p: Pointer, j: Register, mask: Register | None = None) -> Register:
    zeros = llvm.Constant(_vector(p), None)
    args = [_addresses(p, j), _align(p), _all_lanes(mask, j), zeros]
    return _in_register(p, _masked(p, "gather", "v16p0", args, _vector(p)), LANES)


@vector_function()
def scatter(p: Pointer, j: Register, v: Register, mask: Register | None = None) -> None:
    """Where lanes have equal numbers the last one wins, as in a loop."""
    args = [_in_memory(p, v, LANES), _addresses(p, j), _align(p), _all_lanes(mask, j)]
    _masked(p, "scatter", "v16p0", args, llvm.VoidType())


@vector_function()
def load_strided(p: Pointer, i: Register, step: Register, mask: Register | None = None) -> Register:
    if getattr(step.value, "constant", None) == 2:
        return _every_other(p, i, mask)
    if mask is not None:
        return gather(p, lane_index(i, step), mask)
    return _in_register(p, _each_lane(p, i, step), LANES)


def _every_other(p: Pointer, i: Register, mask: Register | None) -> Register:
    """Elements i, i + 2, ... i + 30: two loads of neighbours and a shuffle, 0.6 ns on a Zen 4.

    Only the elements asked for are read: the second load begins at i + 15, so as to end at i + 30; under a
    mask, both are masked by the lanes that their even elements go to.
    """
    halves: list[Register] = []
    for half, first in enumerate((0, 15)):
        wanted = None
        if mask is not None:
            at = [half * LANES // 2 + (n - half) // 2 for n in range(LANES)]
            even = _shuffle(mask, [a if n % 2 == half else LANES for n, a in enumerate(at)])
            wanted = mask.like(even)
        halves.append(load(p, i + first, wanted))
    low, high = halves
    pick = [*range(0, LANES, 2), *range(LANES + 1, 2 * LANES, 2)]
    return low.like(low.builder.shuffle_vector(low.value, high.value, _lanes(pick)))


def _shuffle(x: Register, pick: list[int]) -> llvm.Value:
    """Lanes of x by number; number LANES is a zero."""
    zeros = llvm.Constant(x.type, None)
    value: llvm.Value = x.builder.shuffle_vector(x.value, zeros, _lanes(pick))
    return value


def _lanes(numbers: list[int]) -> llvm.Constant:
    return llvm.Constant(llvm.VectorType(llvm.IntType(32), len(numbers)), numbers)


def _each_lane(p: Pointer, i: Register, step: Register) -> llvm.Value:
    """16 loads of one element: 2.3 ns on a Zen 4, where the gather instruction takes 5.4."""
    vector: llvm.Value = llvm.Constant(_vector(p), llvm.Undefined)
    for n in range(LANES):
        value = p.builder.load(p.at(i + step * n), align=p.dtype.bytes)
        vector = p.builder.insert_element(vector, value, llvm.Constant(llvm.IntType(32), n))
    return vector


@vector_function()
def store_strided(
    p: Pointer, i: Register, step: Register, v: Register, mask: Register | None = None
) -> None:
    if mask is not None:
        scatter(p, lane_index(i, step), v, mask)
        return
    vector = _in_memory(p, v, LANES)
    for n in range(LANES):
        value = p.builder.extract_element(vector, llvm.Constant(llvm.IntType(32), n))
        p.builder.store(value, p.at(i + step * n), align=p.dtype.bytes)


# ---------------------------------------------------------------------------------- lanes


@vector_function()
def first_lanes(n: Register) -> Register:
    """A mask: the first n lanes."""
    return lane_numbers(n.builder, i32) < CONVERT["cast"](n, i32)


@vector_function()
def lanes_between(low: Register, high: Register) -> Register:
    """A mask: the lanes low, ... high-1 (either may lie outside of 0 ... 15)."""
    lanes = lane_numbers(low.builder)
    return OPERATORS["ge"](lanes, low) & (lanes < high)


@vector_function()
def lane_index(start: Register, step: Register) -> Register:
    """start + step * lane: 16 element numbers, i64."""
    return lane_numbers(start.builder) * step + start


@vector_function()
def lane(v: Register, n: Register) -> Register:
    """Lane number n, as a scalar; a scalar is the same in every lane."""
    if v.lanes == 1:
        return v
    return Register(v.builder, v.builder.extract_element(v.value, n.value), v.dtype, 1)


# ---------------------------------------------------------------------------------- combining


def _combine(name: str) -> Callable[..., Register]:
    """The function of a combine: add, mul, max, min, or, and."""
    others = {"max": maximum, "min": minimum, "or": OPERATORS["bitor"], "and": OPERATORS["bitand"]}
    return others.get(name) or OPERATORS[name]


def _accumulator(name: str) -> Callable[..., None]:
    """accumulate_NAME: x[j] = combine(x[j], v), lane after lane, so that equal numbers add up."""
    combine = _combine(name)

    def f(p: Pointer, j: Register, v: Register, mask: Register | None = None) -> None:
        for n in range(LANES):
            number = Register(p.builder, llvm.Constant(llvm.IntType(32), n), i32, 1)
            with p.builder.if_then(lane(_mask(mask, j), number).value):
                at = lane(j, number)
                set_element(p, at, combine(element(p, at), lane(v, number)))

    f.__name__ = f"accumulate_{name}"
    return vector_function()(f)


def _mask(mask: Register | None, j: Register) -> Register:
    return j.number(True, bool_) if mask is None else mask


def _fold(name: str) -> Callable[[Register], Register]:
    """fold_NAME: all lanes combined, halves with halves: 16 -> 8 -> 4 -> 2 -> 1."""
    combine = _combine(name)

    def f(v: Register) -> Register:
        while v.lanes > 1:
            half = v.lanes // 2
            v = combine(_part(v, 0, half), _part(v, half, half))
        return v

    f.__name__ = f"fold_{name}"
    return vector_function()(f)


def _part(v: Register, start: int, count: int) -> Register:
    b, number = v.builder, llvm.IntType(32)
    if count == 1:
        value = b.extract_element(v.value, llvm.Constant(number, start))
    else:
        wanted = llvm.Constant(llvm.VectorType(number, count), list(range(start, start + count)))
        value = b.shuffle_vector(v.value, llvm.Constant(v.type, llvm.Undefined), wanted)
    return Register(b, value, v.dtype, count)


COMBINES = ("add", "mul", "max", "min", "or", "and")
ACCUMULATORS = {f"accumulate_{c}": _accumulator(c) for c in COMBINES}
FOLDS = {f"fold_{c}": _fold(c) for c in COMBINES}


# ---------------------------------------------------------------------------------- addresses


@vector_function()
def view(memory: Pointer, offset: Register, dtype: DType) -> Pointer:
    """The address `offset` bytes into `memory` (u8), of elements of `dtype`."""
    t = memory_type(dtype).as_pointer()
    return Pointer(memory.builder, memory.builder.bitcast(memory.at(offset), t), dtype)


@vector_function()
def outside(j: Register, size: Register) -> Register:
    """Is j < 0 or j >= size, in any lane? A Python truth value."""
    found = FOLDS["fold_or"]((j < 0) | OPERATORS["ge"](j, size))
    return replace(found, weak=True)
