"""`Captured`: one recorded call of a model, and how a later call maps onto it.

    args, kwargs --flatten--> leaves --inputs--> graph inputs ┐
    modules' parameters and buffers --params--> graph params  ┴-> graph -> results --rebuild--> value

The leaves that are not tensors were baked in by value; guards compare them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from minicompile.capture.reads import Hooks, Read
from minicompile.ir.graph import Graph


@dataclass(frozen=True)
class Leaf:
    """One leaf of (args, kwargs). `input` is the graph input it feeds; None if baked in by `value`."""

    name: str
    input: str | None
    value: Any = None


@dataclass(frozen=True)
class Slot:
    """Where the tensor of one graph parameter lives.

    It is read anew on every call, from the module's own dict (`kind` is ``_parameters`` or
    ``_buffers``), so rebinding is followed.  A tensor the code closed over has no module: it is the
    `constant` itself.
    """

    name: str
    path: str
    module: nn.Module | None = None
    kind: str = ""
    attribute: str = ""
    constant: torch.Tensor | None = None

    def get(self) -> torch.Tensor | None:
        """The tensor as it is now; None if it was deleted, or set to None."""
        if self.module is None:
            return self.constant
        tensor: torch.Tensor | None = getattr(self.module, self.kind).get(self.attribute)
        return tensor

    def read(self) -> torch.Tensor:
        """The tensor as it is now. KeyError if it is gone."""
        tensor = self.get()
        if tensor is None:
            raise KeyError(self.path)
        return tensor


@dataclass(frozen=True)
class Result:
    """One leaf of the return value: exactly one of

    the graph's output number `output`; the very tensor of argument leaf number `leaf`, or of a
    parameter's `slot`; or the `literal`.
    """

    output: int | None = None
    leaf: int | None = None
    slot: Slot | None = None
    literal: Any = None

    @property
    def argument(self) -> bool:
        """Is it the very tensor object that came in?"""
        return self.leaf is not None or self.slot is not None

    def pick(self, outputs: Sequence[torch.Tensor], leaves: Sequence[Any]) -> Any:
        """The object to return."""
        if self.leaf is not None:
            return leaves[self.leaf]
        if self.slot is not None:
            return self.slot.read()
        return self.literal if self.output is None else outputs[self.output]


@dataclass(frozen=True)
class ModuleFact:
    """A module that was called: whether its `training` flag was read, and as what."""

    path: str
    module: nn.Module
    parent: nn.Module | None
    attribute: str
    training: bool | None


@dataclass(frozen=True)
class Captured:
    """A graph (stage ``capture``, ATen level, in-place ops still in it) and its surroundings."""

    graph: Graph
    structure: Hashable  # of (args, kwargs): what flatten() gives
    leaves: tuple[Leaf, ...]
    slots: tuple[Slot, ...]  # one per graph parameter, in order
    tied: tuple[tuple[Slot, Slot], ...]  # pairs that were one tensor
    modules: tuple[ModuleFact, ...]
    reads: tuple[Read, ...]
    hooks: tuple[Hooks, ...]
    results: tuple[Result, ...]
    out_spec: TreeSpec
    mutated: tuple[str, ...]  # arguments that the call writes to
    requires_grad: tuple[str, ...]  # arguments that require grad
    zero_offset: bool  # arguments must start where their storage starts (as_strided)
    autocast: bool
    default_dtype: torch.dtype
    device: str

    @property
    def input_indices(self) -> tuple[int, ...]:
        """For each graph input, the number of its leaf."""
        return tuple(i for i, leaf in enumerate(self.leaves) if leaf.input is not None)

    def needs_grad(self, leaves: Sequence[Any]) -> bool:
        """Would eager record gradients for this call?"""
        if not torch.is_grad_enabled():
            return False
        return any(leaves[i].requires_grad for i in self.input_indices) or any(
            slot.read().requires_grad for slot in self.slots
        )

    def rebuild(self, outputs: Sequence[torch.Tensor], leaves: Sequence[Any]) -> Any:
        """The value to return, from the graph's outputs and the leaves of this call."""
        if self.out_spec.is_leaf():
            return self.results[0].pick(outputs, leaves)
        return tree_unflatten([r.pick(outputs, leaves) for r in self.results], self.out_spec)


_PLAIN = {torch.Tensor, nn.Parameter, int, float, bool, str, type(None)}


def flatten(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], Hashable]:
    """(leaves, structure) of a call. Two calls of one structure have leaves that correspond.

    A call with tensors and plain values only is its own list of leaves; pytrees take torch's way.
    """
    if not kwargs and all([type(a) in _PLAIN for a in args]):
        return list(args), len(args)
    leaves, spec = tree_flatten((tuple(args), dict(kwargs)))
    return leaves, _Structure(spec)


@dataclass(frozen=True)
class _Structure:
    """A TreeSpec that can be a dictionary key."""

    spec: TreeSpec

    def __hash__(self) -> int:
        return hash((self.spec.type, self.spec.num_leaves))
