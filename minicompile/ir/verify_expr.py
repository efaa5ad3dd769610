"""The rule for one op in a kernel: it is elementwise, and its dtype is that of its type rule."""

from __future__ import annotations

from minicompile.ir.loop import Call, Expr, dtype_of
from minicompile.ir.optable import is_elementwise, scalar_dtype


def call_problem(e: Expr) -> str:
    """What is wrong with the dtypes of a call, or ""; its arguments are looked at on their own."""
    if not isinstance(e, Call):
        return ""
    if not is_elementwise(e.op):
        return f"{e.op} is not an elementwise primitive"
    operands = ", ".join(str(dtype_of(a)) for a in e.args)
    try:
        inferred = scalar_dtype(e.op, *map(dtype_of, e.args))
    except TypeError as error:
        return f"{e.op}({operands}): {error}"
    if inferred is not None and inferred is not e.dtype:
        return f"{e.op}({operands}) gives {inferred}, not {e.dtype}"
    return ""
