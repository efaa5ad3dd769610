"""The upsample ops: one per mode and number of dimensions, and their forms with sizes or factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minicompile.ops.aten_resize import (
    Axis,
    Tap,
    cubic_taps,
    interpolated,
    linear_taps,
    nearest_axis,
)
from minicompile.ops.build import Handle
from minicompile.ops.registry import Sample, composite, sample
from minicompile.ops.samples import floats

Sizes = Sequence[int] | None
Factors = Sequence[float] | None


def resolved(x: Handle, sizes: Sizes, factors: Factors) -> tuple[list[int], list[float | None]]:
    """The output sizes and the scale factors of the `.vec` forms, where one of the two is given."""
    inputs = x.shape[2:]
    if factors is None:
        return list(sizes or ()), [None] * len(inputs)
    return [int(n * f) for n, f in zip(inputs, factors)], list(factors)


NAMES = ((), ("scales",), ("scales_h", "scales_w"), ("scales_d", "scales_h", "scales_w"))


def _scales(
    n: int, given: Sequence[float | None], named: dict[str, float | None]
) -> list[float | None]:
    """The scale factors by axis, given in order or by the schema's names; None where they are left out."""
    known = dict(zip(NAMES[n], given)) | named
    return [known.get(name) for name in NAMES[n]]


def _nearest(
    x: Handle, outputs: Sequence[int], scales: Sequence[float | None], exact: bool
) -> Handle:
    """Each axis by itself. As ATen's (nearest_idx), in two dimensions 1x and 2x ignore the scale."""
    for k, (out, scale) in enumerate(zip(outputs, scales)):
        whole = out in (x.shape[2 + k], 2 * x.shape[2 + k])
        ignored = whole and len(outputs) == 2 and not exact
        x = nearest_axis(x, 2 + k, out, None if ignored else scale, exact)
    return x


def _register_nearest(name: str, n: int, exact: bool, samples: list[Sample]) -> None:
    @composite(f"{name}{n}d", samples=samples)
    def upsample_nearest(
        self: Handle,
        output_size: Sequence[int],
        *scales: float | None,
        **named: float | None,
    ) -> Handle:
        """The nearest element: at ``floor(o * size / output)`` ("exact": at that of the pixel's centre)."""
        return _nearest(self, output_size, _scales(n, scales, named), exact)

    @composite(f"{name}{n}d.vec", samples=[sample(s.args[0], s.args[1], None) for s in samples])
    def upsample_nearest_vec(input: Handle, output_size: Sizes, scale_factors: Factors) -> Handle:
        """As upsample_nearest, with output sizes or scale factors."""
        return _nearest(input, *resolved(input, output_size, scale_factors), exact)


for _name, _exact in (("upsample_nearest", False), ("_upsample_nearest_exact", True)):
    _register_nearest(
        _name, 1, _exact, [sample(floats(2, 3, 5), (7,)), sample(floats(2, 3, 6), (3,))]
    )
    _register_nearest(
        _name,
        2,
        _exact,
        [
            sample(floats(2, 3, 4, 5), (8, 10)),
            sample(floats(2, 3, 4, 5), (7, 3)),
            sample(floats(2, 3, 4, 5), (6, 7), 1.6, 1.5),
        ],
    )
    _register_nearest(_name, 3, _exact, [sample(floats(1, 2, 3, 2, 4), (6, 4, 5))])


def _register_interpolation(
    mode: str, n: int, taps: Callable[[Axis], list[Tap]], samples: list[Sample]
) -> None:
    @composite(f"upsample_{mode}{n}d", samples=samples)
    def upsample(
        self: Handle,
        output_size: Sequence[int],
        align_corners: bool,
        *scales: float | None,
        **named: float | None,
    ) -> Handle:
        """Weighted neighbours of ``(o + 0.5) * size / output - 0.5``; align_corners: of o * (size-1)/(output-1)."""
        known = _scales(n, scales, named)
        return interpolated(self, output_size, align_corners, known, taps)

    @composite(
        f"upsample_{mode}{n}d.vec",
        samples=[sample(s.args[0], s.args[1], s.args[2], None) for s in samples],
    )
    def upsample_vec(
        input: Handle, output_size: Sizes, align_corners: bool, scale_factors: Factors
    ) -> Handle:
        """As upsample, with output sizes or scale factors."""
        outputs, scales = resolved(input, output_size, scale_factors)
        return interpolated(input, outputs, align_corners, scales, taps)


_PLANE = [
    sample(floats(2, 3, 4, 5), (8, 10), False),
    sample(floats(2, 3, 4, 5), (7, 3), True),
    sample(floats(2, 3, 4, 5), (6, 7), False, 1.6, 1.5),
]
_register_interpolation("linear", 1, linear_taps, [sample(floats(2, 3, 5), (7,), False)])
_register_interpolation("bilinear", 2, linear_taps, _PLANE)
_register_interpolation(
    "trilinear", 3, linear_taps, [sample(floats(1, 2, 3, 2, 4), (6, 4, 5), False)]
)
_register_interpolation("bicubic", 2, cubic_taps, _PLANE)
