"""The ATen table: every composite, by family. Importing it registers them all."""

from minicompile.ops import (  # noqa: F401
    aten_arithmetic,
    aten_batch_norm,
    aten_compare,
    aten_conv,
    aten_conv_named,
    aten_extremes,
    aten_join,
    aten_math,
    aten_matmul,
    aten_norm,
    aten_pad,
    aten_rearrange,
    aten_slice,
    aten_special,
    aten_view,
)
