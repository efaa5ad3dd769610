"""Reading at computed places: embedding, gather, index_select, index, take.

Everything is the primitive `gather`, whose indices are i64 and not negative.  PyTorch's index[...] and take
allow negative ones, to which the size is added here; embedding, gather and index_select do not, so for
them a negative index is an error, as in eager.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from minicompile.errors import NotNative
from minicompile.ir.types import bool_, f32, f64, i64, u8
from minicompile.ops.axes import axis, counting, filled, moved, reshaped
from minicompile.ops.build import Handle, broadcast_all, emit
from minicompile.ops.elementwise import where
from minicompile.ops.promote import cast
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats, ints


def from_front(index: Handle, size: int) -> Handle:
    """An index tensor as i64, with `size` added to negative ones."""
    index = cast(index, i64)
    return where(index < 0, index + size, index)


@composite(
    "embedding",
    samples=[
        sample(floats(7, 3), ints(2, 4, low=0, high=7)),
        sample(floats(7, 3), ints(low=0, high=7)),
    ],
)
def embedding(
    weight: Handle,
    indices: Handle,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Handle:
    """Rows of weight; the other arguments only concern gradients."""
    return emit("gather", weight, cast(indices, i64), dims=(0,))


@composite(
    "embedding_renorm",
    samples=[sample(floats(7, 3), ints(4, low=0, high=7), 1.0, 2.0)],
)
def embedding_renorm(self: Handle, indices: Handle, max_norm: float, norm_type: float) -> Handle:
    """The rows that `indices` name, scaled down to a norm of max_norm where they are longer.

    Source: aten/src/ATen/native/Embedding.cpp, with its 1e-7 below the division.
    """
    from minicompile.ops.aten_variance import vector_norm

    if self.dtype not in (f32, f64):
        raise NotNative(f"rows of {self.dtype} are renormalised in steps of their own rounding")
    rows, wanted = self.shape[0], cast(indices, i64)
    nobody, everybody = filled((rows,), False, bool_), filled(wanted.shape, True, bool_)
    named = emit("scatter", nobody, everybody, wanted, dims=(0,), combine="set")
    norm = vector_norm(self, norm_type, (1,))
    scale = where(named & (norm > max_norm), max_norm / (norm + 1e-7), 1.0)
    return self * reshaped(scale, (rows, 1))


def places(index: Handle, dim: int) -> list[Handle]:
    """For ``x[i][j]...`` with index in place of position `dim`: one index tensor per axis."""
    others = [counting(index.shape, d) if d != dim else index for d in range(index.ndim)]
    return others


_GATHER = [
    sample(floats(3, 4), 1, ints(2, 5, low=0, high=4)),
    sample(floats(3, 4, 2), 0, ints(2, 4, 1, low=0, high=3)),
    sample(floats(), 0, ints(low=0, high=1)),
]


@composite("gather", samples=_GATHER)
def gather(self: Handle, dim: int, index: Handle, *, sparse_grad: bool = False) -> Handle:
    """``result[i, j] = self[index[i, j], j]`` for dim 0, and so on."""
    if self.ndim == 0 or index.ndim == 0:
        row = reshaped(self, self.shape or (1,))
        return reshaped(gather(row, 0, reshaped(index, index.shape or (1,))), index.shape)
    if not math.prod(index.shape):
        return filled(index.shape, 0, self.dtype)  # of an empty index, not even the shape matters
    index, d = cast(index, i64), axis(dim, self.ndim)
    return emit("gather", self, *places(index, d), dims=tuple(range(self.ndim)))


@composite("take_along_dim", samples=[sample(floats(3, 4), ints(3, 2, low=0, high=4), 1)])
def take_along_dim(self: Handle, indices: Handle, dim: int | None = None) -> Handle:
    """`gather` with operands broadcast to each other except along dim; None: of the flat tensors."""
    if dim is None:
        flat = reshaped(self, (math.prod(self.shape),))
        return gather(flat, 0, reshaped(indices, (math.prod(indices.shape),)))
    d = axis(dim, self.ndim)
    shape = [max(n, m) for n, m in zip(self.shape, indices.shape)]
    if any(n != m and 1 not in (n, m) for n, m in zip(self.shape, indices.shape) if n != shape[d]):
        raise NotNative("take_along_dim of shapes that do not broadcast")
    x = emit(
        "broadcast", self, shape=[*shape[:d], self.shape[d], *shape[d + 1 :]], dims=range(self.ndim)
    )
    wide = [*shape[:d], indices.shape[d], *shape[d + 1 :]]
    return gather(x, d, emit("broadcast", indices, shape=wide, dims=range(self.ndim)))


@composite(
    "index_select",
    samples=[
        sample(floats(3, 4), 1, ints(5, low=0, high=4)),
        sample(floats(), 0, ints(1, low=0, high=1)),
    ],
)
def index_select(self: Handle, dim: int, index: Handle) -> Handle:
    """Positions of an axis, in the order of a vector of indices."""
    index = cast(reshaped(index, index.shape or (1,)), i64)
    if self.ndim == 0:
        return reshaped(emit("gather", reshaped(self, (1,)), index, dims=(0,)), ())
    d = axis(dim, self.ndim)
    return moved(emit("gather", self, index, dims=(d,)), (0,), (d,))


def subscripts(x: Handle, indices: Sequence[Handle | None]) -> tuple[list[Handle], list[int]]:
    """The index tensors of ``x[indices]``, broadcast to one shape, and the axes that they address."""
    dims = [d for d, index in enumerate(indices) if index is not None]
    found = [index for index in indices if index is not None]
    if any(index.dtype in (bool_, u8) for index in found):
        raise NotNative("the number of true elements of a mask is known only at run time")
    fixed = [from_front(index, x.shape[d]) for d, index in zip(dims, found)]
    return list(broadcast_all(*fixed)), dims


_INDEX = [
    sample(floats(3, 4), (ints(2, low=-3, high=3),)),
    sample(floats(3, 4, 5), (None, ints(2, 1, low=0, high=4), ints(3, low=-5, high=5))),
    sample(floats(3, 4, 5), (ints(2, low=0, high=3), None, ints(2, low=0, high=5))),
]


@composite("index.Tensor", "_unsafe_index.Tensor", samples=_INDEX)
def index(self: Handle, indices: Sequence[Handle | None]) -> Handle:
    """``self[indices]``; None takes a whole axis. Masks are not native: their result's size varies.

    The axes of the index tensors replace the addressed axes where those lie side by side, else they
    come first (NumPy's rule).
    """
    if all(i is None for i in indices):
        return self
    found, dims = subscripts(self, indices)
    picked = emit("gather", self, *found, dims=tuple(dims))
    n, first = found[0].ndim, dims[0]
    if dims != list(range(first, first + len(dims))):
        return picked
    return moved(picked, range(n), range(first, first + n))


@composite("take", samples=[sample(floats(3, 4), ints(2, 2, low=-12, high=12))])
def take(self: Handle, index: Handle) -> Handle:
    """Elements of the flat tensor."""
    n = math.prod(self.shape)
    return emit("gather", reshaped(self, (n,)), from_front(index, n), dims=(0,))
