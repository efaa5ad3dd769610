"""Matrix products: all of them are one `contract`, plus at most a bias.

Half floats are multiplied and summed in f32 and rounded once at the end, bias included, as PyTorch's CPU
kernels do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicompile.errors import NotNative
from minicompile.ir.types import DType, promote
from minicompile.ops.axes import axis, dropped
from minicompile.ops.build import Handle, broadcast_to, emit
from minicompile.ops.promote import cast, number, widened
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import floats, ints

LETTERS = "abcdefghlmpqrstuvwxyz"  # for batch axes; i, j, k, n, o are the matrix axes


def contract(a: Handle, b: Handle, spec: str) -> Handle:
    """Products summed over the axes that the result lacks; half floats give f32. NotNative if complex."""
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        raise NotNative("complex numbers are left to PyTorch")
    return emit("contract", widened(a), widened(b), spec=spec)


def scaled(x: Handle, factor: Any) -> Handle:
    """factor * x; x itself for 1."""
    return x if factor == 1 else x * number(factor, x.dtype)


def _plus(
    self: Handle, product: Handle, beta: Any, alpha: Any, dtype: DType | None = None
) -> Handle:
    """``beta * self + alpha * product``; with beta = 0, self does not count, even where it is NaN."""
    out = scaled(product, alpha)
    if beta != 0:
        out = out + broadcast_to(scaled(cast(widened(self), out.dtype), beta), out.shape)
    return cast(out, dtype or self.dtype)


@composite("mm", samples=[sample(floats(3, 4), floats(4, 5)), sample(ints(2, 3), ints(3, 2))])
def mm(self: Handle, mat2: Handle) -> Handle:
    """[i, k] times [k, j]."""
    return cast(contract(self, mat2, "ik,kj->ij"), self.dtype)


@composite("bmm", samples=[sample(floats(2, 3, 4), floats(2, 4, 5))])
def bmm(self: Handle, mat2: Handle) -> Handle:
    """[b, i, k] times [b, k, j], matrix by matrix."""
    return cast(contract(self, mat2, "bik,bkj->bij"), self.dtype)


@composite("mv", samples=[sample(floats(3, 4), floats(4))])
def mv(self: Handle, vec: Handle) -> Handle:
    """[i, k] times [k]."""
    return cast(contract(self, vec, "ik,k->i"), self.dtype)


@composite("dot", "vdot", samples=[sample(floats(5), floats(5))])
def dot(self: Handle, tensor: Handle) -> Handle:
    """The sum of products of two vectors."""
    return cast(contract(self, tensor, "k,k->"), self.dtype)


@composite("outer", "ger", samples=[sample(floats(3), floats(4))])
def outer(self: Handle, vec2: Handle) -> Handle:
    """[i] times [j]: all products."""
    dtype = promote(self.type, vec2.type)
    a, b = widened(cast(self, dtype)), widened(cast(vec2, dtype))
    shape = (*self.shape, *vec2.shape)
    rows = emit("broadcast", a, shape=shape, dims=(0,))
    return cast(rows * emit("broadcast", b, shape=shape, dims=(1,)), dtype)


@composite(
    "addmm",
    samples=[
        sample(floats(5), floats(3, 4), floats(4, 5)),
        sample(floats(3, 1), floats(3, 4), floats(4, 5), beta=0.5, alpha=2),
    ],
)
def addmm(self: Handle, mat1: Handle, mat2: Handle, *, beta: Any = 1, alpha: Any = 1) -> Handle:
    """``beta * self + alpha * (mat1 @ mat2)``; self is broadcast."""
    return _plus(self, contract(mat1, mat2, "ik,kj->ij"), beta, alpha)


@composite("addmv", samples=[sample(floats(3), floats(3, 4), floats(4), beta=2, alpha=0.5)])
def addmv(self: Handle, mat: Handle, vec: Handle, *, beta: Any = 1, alpha: Any = 1) -> Handle:
    """``beta * self + alpha * (mat @ vec)``."""
    return _plus(self, contract(mat, vec, "ik,k->i"), beta, alpha)


@composite("addr", samples=[sample(floats(3, 4), floats(3), floats(4), beta=2, alpha=0.5)])
def addr(self: Handle, vec1: Handle, vec2: Handle, *, beta: Any = 1, alpha: Any = 1) -> Handle:
    """``beta * self + alpha * outer(vec1, vec2)``."""
    return _plus(self, outer(widened(vec1), widened(vec2)), beta, alpha)


@composite(
    "baddbmm",
    samples=[sample(floats(2, 3, 1), floats(2, 3, 4), floats(2, 4, 5), beta=0.5, alpha=2)],
)
def baddbmm(
    self: Handle, batch1: Handle, batch2: Handle, *, beta: Any = 1, alpha: Any = 1
) -> Handle:
    """``beta * self + alpha * bmm(batch1, batch2)``; self is broadcast."""
    return _plus(self, contract(batch1, batch2, "bik,bkj->bij"), beta, alpha)


@composite(
    "addbmm", samples=[sample(floats(3, 5), floats(2, 3, 4), floats(2, 4, 5), beta=0.5, alpha=2)]
)
def addbmm(
    self: Handle, batch1: Handle, batch2: Handle, *, beta: Any = 1, alpha: Any = 1
) -> Handle:
    """``beta * self + alpha * bmm(batch1, batch2).sum(0)``."""
    return _plus(self, contract(batch1, batch2, "bik,bkj->ij"), beta, alpha)


@composite("_addmm_activation", samples=[sample(floats(5), floats(3, 4), floats(4, 5))])
def addmm_activation(
    self: Handle,
    mat1: Handle,
    mat2: Handle,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    use_gelu: bool = False,
) -> Handle:
    """addmm, then relu (or gelu)."""
    if use_gelu:
        raise NotNative("addmm with a fused gelu")
    return emit("maximum", addmm(self, mat1, mat2, beta=beta, alpha=alpha), 0.0)


@composite(
    "linear",
    samples=[
        sample(floats(2, 3, 4), floats(5, 4), floats(5)),
        sample(floats(4), floats(5, 4)),
    ],
)
def linear(input: Handle, weight: Handle, bias: Handle | None = None) -> Handle:
    """``input @ weight.T + bias``: [..., k] times [n, k]; leading axes are kept."""
    lead = LETTERS[: input.ndim - 1]
    n = "n" if weight.ndim == 2 else ""
    out = contract(input, weight, f"{lead}k,{n}k->{lead}{n}")
    if bias is not None:
        out = out + broadcast_to(widened(bias), out.shape)
    return cast(out, input.dtype)


@composite(
    "matmul",
    samples=[
        sample(floats(2, 3, 4), floats(4, 5)),
        sample(floats(2, 1, 3, 4), floats(6, 4, 5)),
        sample(floats(4), floats(2, 4, 5)),
        sample(floats(2, 3, 4), floats(4)),
        sample(floats(4), floats(4)),
    ],
)
def matmul(self: Handle, other: Handle) -> Handle:
    """Matrix product with broadcast batch axes; vectors are rows on the left, columns on the right."""
    i, j = "i" * (self.ndim > 1), "j" * (other.ndim > 1)
    batch = max(self.ndim, other.ndim, 2) - 2
    a, left = _batched(self, max(self.ndim - 2, 0), batch, other)
    b, right = _batched(other, max(other.ndim - 2, 0), batch, self)
    out = contract(a, b, f"{left}{i}k,{right}k{j}->{LETTERS[:batch]}{i}{j}")
    return cast(out, self.dtype)


def _batched(x: Handle, own: int, batch: int, other: Handle) -> tuple[Handle, str]:
    """x and the letters of its `own` batch axes; an axis of size 1 that the other one repeats is dropped."""
    size = dict(zip(range(batch)[::-1], other.shape[: max(other.ndim - 2, 0)][::-1]))
    letters, gone = "", []
    for d in range(own):
        place = batch - own + d
        if x.shape[d] == 1 and place in size:
            gone.append(d)
        else:
            letters += LETTERS[place]
    return dropped(x, *gone), letters


@composite("inner", samples=[sample(floats(2, 4), floats(3, 4)), sample(floats(2, 4), floats())])
def inner(self: Handle, other: Handle) -> Handle:
    """The sum of products over the last axes; a 0-d operand multiplies."""
    if not self.ndim or not other.ndim:
        return cast(widened(self) * widened(other), self.dtype)
    a, b = LETTERS[: self.ndim - 1], LETTERS[self.ndim : self.ndim + other.ndim - 1]
    return cast(contract(self, other, f"{a}k,{b}k->{a}{b}"), self.dtype)


@composite("tensordot", samples=[sample(floats(2, 3, 4), floats(4, 3, 5), (1, 2), (1, 0))])
def tensordot(
    self: Handle, other: Handle, dims_self: Sequence[int], dims_other: Sequence[int]
) -> Handle:
    """The sum of products over pairs of axes."""
    left = list(LETTERS[: self.ndim])
    right = list(LETTERS[self.ndim : self.ndim + other.ndim])
    for p, q in zip(dims_self, dims_other):
        right[axis(q, other.ndim)] = left[axis(p, self.ndim)]
    out = "".join(c for c in left + right if (c in left) != (c in right))
    spec = f"{''.join(left)},{''.join(right)}->{out}"
    return cast(contract(self, other, spec), self.dtype)
