"""What cannot be captured, said so that a person can act: the user's line, the reason, the ways out."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from minicompile.capture.provenance import source_line, users_line
from minicompile.errors import CompileError
from minicompile.ir.location import Loc

_WAYS_OUT = {
    "MC010": "Without fullgraph=True the call is left to eager PyTorch.",
    "MC011": "Write it with tensor operations (torch.where, masks of fixed size), pass the value in as "
    "an argument, or compile the parts around it. Without fullgraph=True the call is left to eager "
    "PyTorch.",
}


def explained(error: Exception, current: Loc | None) -> Exception:
    """The exception to raise for one that came out of the model's forward.

    Limits of the capture become a CompileError with the user's line.  Errors of the model itself stay
    what they are in eager, with the line as a note.  `current` is the line of an fx node, if known.
    """
    loc = current or users_line(error.__traceback__)
    if isinstance(error, CompileError):
        return error if error.where or loc is None else _located(error, loc)
    code, message = _limit(error)
    if code:
        return _located(CompileError(code, message), loc)
    if loc is not None:
        error.add_note(f"  at {place(loc)}: {source_line(loc)}")
    return error


def place(loc: Loc) -> str:
    """``m.py:9 in forward()``."""
    return f"{loc} in {loc.function}()" if loc.function else str(loc)


def _located(error: CompileError, loc: Loc | None) -> CompileError:
    return CompileError(
        error.code,
        error.message,
        where=place(loc) if loc else "",
        context=error.context or (source_line(loc) if loc else ""),
        remedy=error.remedy or _WAYS_OUT.get(error.code, ""),
    )


def _limit(error: Exception) -> tuple[str, str]:
    """(code, message) when the exception is about capturing, ("", "") when it is the model's own."""
    if isinstance(error, DataDependentOutputException | GuardOnDataDependentSymNode):
        op = getattr(error, "func", "")
        return "MC011", f"the value of a tensor decides what runs next{_by(op)}"
    if isinstance(error, DynamicOutputShapeException):
        return "MC011", f"the shape of a result depends on values{_by(error.func)}"
    if isinstance(error, UnsupportedOperatorException):
        return "MC010", f"{error.func} has no shape rule, so it cannot run on fake tensors"
    if isinstance(error, RuntimeError) and "not supported for tensor subclasses" in str(error):
        return "MC011", "a tensor leaves PyTorch (.numpy()) in the middle of the model"
    if isinstance(error, RuntimeError) and "Cannot access data pointer" in str(error):
        return "MC010", "the model reads the memory of a tensor directly"
    return "", ""


def _by(op: Any) -> str:
    name = str(op).removeprefix("aten.").removesuffix(".default")
    return {"": "", "_local_scalar_dense": " (bool(), .item(), int() ...)"}.get(name, f" ({name})")


def check_input(name: str, t: torch.Tensor) -> None:
    """Refuse inputs that are no plain dense tensors. CompileError MC013 says which and what to do."""
    if type(t) not in (torch.Tensor, torch.nn.Parameter):
        raise CompileError(
            "MC013",
            f"input {name} is a {type(t).__name__}; only plain tensors can be compiled",
            remedy="Unwrap it first, for instance with .as_subclass(torch.Tensor).",
        )
    if t.is_quantized or t.is_nested or t.is_mkldnn:
        raise CompileError(
            "MC013",
            f"input {name} is a quantized, nested or mkldnn tensor",
            remedy="Pass a dense tensor (.dequantize(), .to_dense()).",
        )
