"""How the loop interpreter addresses memory: loops are array axes, an affine index is a strided view.

While several iterations run at once, each loop among them is an **axis**: every scalar of the body is a
tensor with one dimension per axis (of size 1 where it does not vary).  A buffer declared inside such
loops has one copy per iteration: its first dimensions are the axes.  ``x[i*2 + k]`` with axes i and k is
then the view of x with strides (2, 1): no element is copied and no index is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from minicompile.ir.index import Atom, Index


@dataclass(frozen=True)
class Axis:
    """A loop of which `count` iterations run at once: var = (start + i) * step for i in 0 ... count-1."""

    var: str
    start: int
    count: int
    step: int


@dataclass(frozen=True)
class Memory:
    """A buffer: its first `depth` dimensions are the axes it was declared under."""

    tensor: torch.Tensor
    depth: int = 0


@dataclass
class Place:
    """Where the interpreter is: axes, variables of loops that run one iteration, scalars, buffers."""

    axes: list[Axis] = field(default_factory=list)
    fixed: dict[str, int] = field(default_factory=dict)
    names: dict[str, torch.Tensor] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)

    @property
    def counts(self) -> list[int]:
        return [a.count for a in self.axes]

    def along(self, values: torch.Tensor, axis: int) -> torch.Tensor:
        """A vector laid along one axis."""
        shape = [1] * len(self.axes)
        shape[axis] = -1
        return values.reshape(shape)

    def aligned(self, t: torch.Tensor) -> torch.Tensor:
        """A tensor made under fewer axes, with dimensions of size 1 for the others."""
        return t.reshape(*t.shape, *[1] * (len(self.axes) - t.ndim)) if t.ndim else t

    # ------------------------------------------------------------------------------ indices

    def values(self, index: Index) -> torch.Tensor | int:
        """The value of an index: an int, or an i64 tensor with one dimension per axis."""
        total: torch.Tensor | int = index.const
        for atom, c in index.terms:
            total = total + self._atom(atom) * c
        return total

    def _atom(self, atom: Atom) -> torch.Tensor | int:
        if not isinstance(atom, str):
            inner = self.values(atom.index)
            return inner % atom.by if atom.mod else inner // atom.by
        if atom in self.fixed:
            return self.fixed[atom]
        for number, axis in enumerate(self.axes):
            if axis.var == atom:
                values = (torch.arange(axis.count) + axis.start) * axis.step
                return self.along(values, number)
        return self.aligned(self.names[atom])

    def address(self, m: Memory, index: tuple[Index, ...]) -> tuple[int, list[int]] | None:
        """(offset in the storage, one stride per axis); None where the index is not affine in the axes."""
        steps = m.tensor.stride()
        strides = [steps[a] if a < m.depth else 0 for a in range(len(self.axes))]
        offset = int(m.tensor.storage_offset())
        for i, step in zip(index, steps[m.depth :]):
            offset += i.const * step
            for atom, c in i.terms:
                number = next((n for n, a in enumerate(self.axes) if a.var == atom), None)
                if number is None:
                    value = self._atom(atom)
                    if not isinstance(value, int):
                        return None
                    offset += value * c * step
                else:
                    axis = self.axes[number]
                    offset += axis.start * axis.step * c * step
                    strides[number] += axis.step * c * step
        return offset, strides

    # ------------------------------------------------------------------------------ views

    def view(self, m: Memory, index: tuple[Index, ...]) -> torch.Tensor | None:
        """The elements at `index` as a view of the memory, one dimension per axis; None if there is none."""
        found = self.address(m, index)
        if found is None or min(found[1], default=0) < 0:
            return None
        offset, strides = found
        sizes = [n if s else 1 for n, s in zip(self.counts, strides)]
        return m.tensor.as_strided(sizes, strides, offset)

    def subscript(self, m: Memory, index: tuple[Index, ...], clamp: bool) -> list[torch.Tensor]:
        """Index tensors for every dimension of the memory; `clamp` moves them into its bounds."""
        own = [self.along(torch.arange(self.axes[a].count), a) for a in range(m.depth)]
        for i, size in zip(index, m.tensor.shape[m.depth :]):
            at = torch.as_tensor(self.values(i))
            at = at if at.ndim else at.reshape([1] * len(self.axes))
            own.append(at.clamp(0, size - 1) if clamp else at)
        return own


def injective(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Does every combination of positions have its own address? (Sufficient: strides nest.)"""
    reach = 0
    for step, n in sorted((s, n) for n, s in zip(sizes, strides) if n > 1):
        if step <= reach:
            return False
        reach += step * (n - 1)
    return True
