"""What the IR needs to know of an op, without knowing the ops: a table that `minicompile.ops` fills.

The printer asks for the infix operator, the parser and the verifiers for the type rule, the interpreters
for the meaning.  None of them contains the name of an op.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Protocol

from minicompile.ir.types import DType, TensorType


class OpInfo(Protocol):
    """The part of a registry entry that the IR uses (see ops.registry.Primitive)."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Any: ...
    @property
    def infix(self) -> str: ...
    @property
    def infer(self) -> Callable[..., TensorType]: ...
    @property
    def meaning(self) -> Callable[..., Any]: ...


OPS: dict[str, OpInfo] = {}  # by name; filled by ops.registry.primitive


def is_elementwise(op: str) -> bool:
    """Does the op take scalars, element by element?"""
    return op in OPS and OPS[op].kind.value == "E"


def infix_ops() -> dict[str, str]:
    """Python operator -> op: ``{"+": "add", ...}``."""
    return {entry.infix: name for name, entry in OPS.items() if entry.infix}


@cache
def takes_dtype(op: str) -> bool:
    """Is the result dtype an attribute of the op, as for a conversion?

    Then it stands last among the arguments in the text of a loop, and goes to the meaning by keyword.
    """
    parameter = inspect.signature(OPS[op].infer).parameters.get("dtype")
    return parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY


@lru_cache(maxsize=4096)
def scalar_dtype(op: str, *operands: DType) -> DType | None:
    """The dtype of an elementwise op on scalars of these dtypes; None where it is an attribute.

    KeyError if there is no such op, TypeError from its type rule.
    """
    if takes_dtype(op):
        return None
    return OPS[op].infer(*(TensorType(d) for d in operands)).dtype
