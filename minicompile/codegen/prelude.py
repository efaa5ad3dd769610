"""All names that generated code may use.  A generated module imports from here what it needs."""

from __future__ import annotations

import math
import operator
from typing import Any

from minicompile.codegen import functions, vector_integer, vector_memory, vector_ops
from minicompile.codegen.numba_types import vector_function
from minicompile.codegen.register import OPERATORS, Register, is_real, together
from minicompile.codegen.vector_cast import NAMED_CASTS
from minicompile.codegen.vector_math import MATH
from minicompile.codegen.vector_memory import ACCUMULATORS, FOLDS
from minicompile.codegen.vector_ops import Operand


@vector_function(operator.pow)
def power(a: Operand, b: Operand) -> Register:
    x, y = together(a, b)
    return MATH["pow"](x, y) if is_real(x.dtype) else vector_integer.integer_power(x, y)


_MEMORY = (
    *("load", "store", "load_strided", "store_strided", "gather", "scatter"),
    *("first_lanes", "lanes_between", "lane_index", "lane", "view", "outside"),
)
_FUNCTIONS = ("kernel", "host")
_OPS = (
    *("fma", "where", "maximum", "minimum", "isnan", "isinf", "signbit", "copysign", "sign"),
    *("sqrt", "rsqrt", "reciprocal", "floor", "ceil", "trunc", "neg", "bitnot", "splat"),
)
NAMES: dict[str, Any] = {
    **{name: getattr(functions, name) for name in _FUNCTIONS},
    "inf": math.inf,
    "nan": math.nan,
    **NAMED_CASTS,
    **MATH,
    **ACCUMULATORS,
    **FOLDS,
    **{name: getattr(vector_memory, name) for name in _MEMORY},
    **{name: getattr(vector_ops, name) for name in _OPS},
    **{name: getattr(vector_integer, name) for name in ("trunc_div", "fmod")},
    "abs": vector_ops.absolute,
    "round": vector_ops.roundeven,
}
OPERATORS["pow"] = power
globals().update(NAMES)
