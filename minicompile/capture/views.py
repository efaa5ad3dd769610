"""Views: how to take one from a value, and how to put a changed one back.

Eager's views share memory.  In a pure graph a view is a value like any other; to write through it is to
compute the *base* anew: ``x[1:].add_(1)`` becomes ``x' = slice_scatter(x, add(slice(x), 1))``.  For
each ATen view op, `PUT` says which op does that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from minicompile.ir.graph import Arg
from minicompile.ir.types import TensorType

Call = tuple[str, tuple[Arg, ...]]  # an op and its arguments after the tensors


@dataclass(frozen=True)
class View:
    """A view op without its tensor: ``aten.select.int`` and (0, 1), giving a tensor of `type`."""

    op: str
    args: tuple[Arg, ...]
    attrs: tuple[tuple[str, Arg], ...]
    type: TensorType


# Ops whose result is the same tensor again.
SAME = ("aten.detach", "aten.alias", "aten.lift")

# Views that rearrange: the inverse rearrangement of the new value gives the new base.
# view, shape of the base -> op and arguments
_INVERSE: dict[str, Callable[[View, TensorType], Call]] = {
    "aten.view": lambda v, base: ("aten.view", (base.shape,)),
    "aten.reshape": lambda v, base: ("aten.view", (base.shape,)),
    "aten._unsafe_view": lambda v, base: ("aten.view", (base.shape,)),
    "aten._reshape_alias": lambda v, base: ("aten.view", (base.shape,)),
    "aten.squeeze": lambda v, base: ("aten.view", (base.shape,)),
    "aten.squeeze.dim": lambda v, base: ("aten.view", (base.shape,)),
    "aten.squeeze.dims": lambda v, base: ("aten.view", (base.shape,)),
    "aten.unsqueeze": lambda v, base: ("aten.view", (base.shape,)),
    "aten.t": lambda v, base: ("aten.t", ()),
    "aten.transpose.int": lambda v, base: ("aten.transpose.int", v.args),
    "aten.permute": lambda v, base: ("aten.permute", (_inverse_permutation(v.args[0]),)),
    "aten.view_as_real": lambda v, base: ("aten.view_as_complex", ()),
    "aten.view_as_complex": lambda v, base: ("aten.view_as_real", ()),
    "aten.view.dtype": lambda v, base: ("aten.view.dtype", (base.dtype,)),
    "aten._conj": lambda v, base: ("aten._conj", ()),
}

# Views of a part: scatter the new part into the old base, with the view's own arguments.
_SCATTER: dict[str, str] = {
    "aten.select.int": "aten.select_scatter",
    "aten.slice.Tensor": "aten.slice_scatter",
    "aten.diagonal": "aten.diagonal_scatter",
    "aten.as_strided": "aten.as_strided_scatter",
}


def inverse(view: View, base: TensorType) -> Call | None:
    """The op that turns a new value of the whole view into the new base; None if it is only a part."""
    rule = _INVERSE.get(view.op)
    return rule(view, base) if rule else None


def scatter(view: View) -> str | None:
    """The op that writes the view's new value into its base; None for views eager cannot write to."""
    return _SCATTER.get(view.op)


def _inverse_permutation(dims: Arg) -> tuple[int, ...]:
    assert isinstance(dims, tuple)
    order = [int(d) % len(dims) for d in dims if isinstance(d, int)]
    return tuple(sorted(range(len(order)), key=lambda i: order[i]))


def pieces(op: str, args: tuple[Arg, ...], types: tuple[TensorType, ...]) -> list[View]:
    """A view op with several results as one view per result: unbind selects, split slices.

    `args` are those after the tensor.
    """
    dim = _int(args, 0 if op == "aten.unbind.int" else 1)
    if op == "aten.unbind.int":
        return [View("aten.select.int", (dim, i), (), t) for i, t in enumerate(types)]
    views, start = [], 0
    for t in types:
        stop = start + t.dims[dim]
        views.append(View("aten.slice.Tensor", (dim, start, stop), (), t))
        start = stop
    return views


def _int(args: tuple[Arg, ...], i: int) -> int:
    x = args[i] if len(args) > i else 0
    assert isinstance(x, int)
    return x
