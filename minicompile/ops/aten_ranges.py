"""Numbers in equal distances: arange, linspace, logspace."""

from __future__ import annotations

import math

from minicompile.errors import NotNative
from minicompile.ir.types import DType, f32, f64, i64
from minicompile.ops import elementwise as el
from minicompile.ops.aten_creation import Number, Options, plain
from minicompile.ops.build import Handle
from minicompile.ops.creation import iota
from minicompile.ops.promote import (
    Operand,
    cast,
    compute_dtype,
    default_float,
    number,
    rounded,
    stored,
    tensors,
    widened,
)
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats


@composite("arange", samples=[sample(5), sample(2.5), sample(3, dtype=f32)])
def arange(end: Number, dtype: DType | None = None, **options: Options) -> Handle:
    """0, 1, 2, ... below end."""
    return arange_step(0, end, 1, dtype, **options)


@composite("arange.start", samples=[sample(2, 7), sample(-1.5, 3)])
def arange_start(
    start: Number, end: Number, dtype: DType | None = None, **options: Options
) -> Handle:
    """start, start + 1, ... below end."""
    return arange_step(start, end, 1, dtype, **options)


@composite("arange.start_step", samples=[sample(1, 10, 3), sample(1.0, 0.0, -0.3), sample(5, 5, 2)])
def arange_step(
    start: Number, end: Number, step: Number = 1, dtype: DType | None = None, **options: Options
) -> Handle:
    """start + step * i, up to but without end; floats are computed in f64, as eager does.

    Source: aten/src/ATen/native/RangeFactories.cpp.
    """
    plain(options)
    whole = all(isinstance(v, int) for v in (start, end, step))
    result = dtype or (i64 if whole else default_float())
    if step == 0 or not (whole or result.is_float):
        raise NotNative("a step of 0, or float bounds of an integer range")
    n = math.ceil((end - start) / step) if not whole else -((start - end) // step)
    if n < 0:
        raise NotNative("PyTorch raises for bounds against the sign of the step")
    compute = compute_dtype(result) if result.bytes < 4 and result.is_float else f64
    place = cast(iota(shape=(n,), dim=0), i64 if whole else compute)
    return cast(_line(place, start, step), result)


def _line(place: Handle, start: Number, step: Number) -> Handle:
    """start + step * place."""
    scaled = place if step == 1 else place * number(step, place.dtype)
    return scaled if start == 0 else scaled + number(start, place.dtype)


def _between(start: Number, end: Number, steps: int, dtype: DType) -> Handle:
    """From start to end in equal steps, each half counted from its own end, so both ends are exact.

    Computed in f64; half floats instead round every step, as eager's kernel does.
    Source: aten/src/ATen/native/cpu/RangeFactoriesKernel.cpp.
    """
    half = compute_dtype(dtype) is not dtype
    place = cast(iota(shape=(steps,), dim=0), f32 if half else f64)
    first, last = number(start, dtype), number(end, dtype)
    step = (float(last) - float(first)) / max(steps - 1, 1)
    if half:
        first, last = rounded(start, dtype), rounded(end, dtype)
        step = float(rounded(float(rounded(last - first, dtype)) / max(steps - 1, 1), dtype))

    def walk(place: Handle) -> Handle:
        return stored(place * step, dtype) if half else place * step

    near, far = walk(place) + float(first), walk(place - float(steps - 1)) + float(last)
    return el.where(place < float(max(steps // 2, 1)), near, far)


LINES = [sample(0, 1, 5), sample(-2.5, 3, 6), sample(3, 1, 1), sample(0, 1, 0)]


@composite("linspace", samples=[*LINES, sample(0, 9, 5, dtype=i64)])
def linspace(
    start: Number, end: Number, steps: int, dtype: DType | None = None, **options: Options
) -> Handle:
    """`steps` numbers from start to end in equal distances, computed in f64 and rounded once."""
    plain(options)
    result = dtype or default_float()
    return cast(_between(start, end, steps, result), result)


@composite("logspace", samples=[*LINES, sample(0, 3, 4, 2.0)])
def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10.0,
    dtype: DType | None = None,
    **options: Options,
) -> Handle:
    """base ** linspace(start, end, steps), computed in f64 and rounded once."""
    plain(options)
    result = dtype or default_float()
    if not result.is_float:
        raise NotNative("integer powers in equal steps are left to PyTorch")
    return cast(el.pow(float(base), widened(_between(start, end, steps, result))), result)


ENDS = [sample(floats(), floats(), 5), sample(floats(), 2.5, 4), sample(-1, floats(), 1)]


@composite(
    "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor", samples=ENDS
)
def linspace_tensor(
    start: Operand, end: Operand, steps: int, dtype: DType | None = None, **options: Options
) -> Handle:
    """linspace between numbers that are 0-d tensors."""
    plain(options)
    result = dtype or default_float()
    if result not in (f32, f64):
        raise NotNative("integers and half floats between tensors are left to PyTorch")
    first, last = (cast(cast(x, result), f64) for x in tensors(start, end))
    place = cast(iota(shape=(steps,), dim=0), f64)
    step = (last - first) / float(max(steps - 1, 1))
    near, far = first + step * place, last - step * (float(steps - 1) - place)
    return cast(el.where(place < float(max(steps // 2, 1)), near, far), result)


@composite(
    "logspace.Tensor_Tensor", "logspace.Tensor_Scalar", "logspace.Scalar_Tensor", samples=ENDS
)
def logspace_tensor(
    start: Operand,
    end: Operand,
    steps: int,
    base: float = 10.0,
    dtype: DType | None = None,
    **options: Options,
) -> Handle:
    """logspace between powers that are 0-d tensors."""
    result = dtype or default_float()
    powers = linspace_tensor(start, end, steps, result, **options)
    return cast(el.pow(float(base), cast(powers, f64)), result)
