"""Scaled dot product attention: softmax(q k' * scale + mask) v, as two contractions around a softmax.

Half floats are computed in f32 and rounded once.  Rows that are masked everywhere give 0, as eager's.
"""

from __future__ import annotations

import math

from minicompile.errors import NotNative
from minicompile.ir.types import bool_
from minicompile.ops.aten_matmul import LETTERS, contract
from minicompile.ops.axes import counting, reshaped, spread
from minicompile.ops.build import Handle, broadcast_shapes, broadcast_to
from minicompile.ops.elementwise import eq, exp, le, log, where
from minicompile.ops.promote import cast
from minicompile.ops.reduction import reduce_max, reduce_sum
from minicompile.ops.registry import composite, sample
from minicompile.ops.samples import bools, floats

LOWEST = float("-inf")


def attend(
    q: Handle, k: Handle, v: Handle, mask: Handle | None, causal: bool, scale: float | None
) -> tuple[Handle, Handle]:
    """(softmax(q k' * scale + mask) v, log of the softmax's denominators), in the computing dtype.

    q [..., i, d], k [..., j, d], v [..., j, e]; the batch axes of q, k, v are equal, or q has one more
    (the queries of a group) than k and v before i.
    """
    batch, shared = LETTERS[: q.ndim - 2], LETTERS[: k.ndim - 2]
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    scores = contract(q, k, f"{batch}in,{shared}jn->{batch}ij") * factor
    scores = _masked(scores, mask, causal)
    last = (scores.ndim - 1,)
    top = reduce_max(scores, dims=last)
    dead = eq(top, LOWEST) if mask is not None else None  # rows that nothing is left of
    top = top if dead is None else where(dead, 0.0, top)
    weights = exp(scores - spread(top, last, scores.shape))
    total = reduce_sum(weights, dims=last)
    total = total if dead is None else where(dead, 1.0, total)
    weights = weights / spread(total, last, scores.shape)
    out = contract(weights, v, f"{batch}ij,{shared}jo->{batch}io")
    return out, top + log(total)


def _masked(scores: Handle, mask: Handle | None, causal: bool) -> Handle:
    """-inf where a bool mask is false, or plus a float mask; causal: where j > i."""
    if causal:
        i, j = scores.ndim - 2, scores.ndim - 1
        seen = le(counting(scores.shape, j), counting(scores.shape, i))
        scores = where(seen, scores, LOWEST)
    if mask is None:
        return scores
    mask = broadcast_to(mask, scores.shape)
    return where(mask, scores, LOWEST) if mask.dtype is bool_ else scores + cast(mask, scores.dtype)


def _grouped(q: Handle, k: Handle, v: Handle, mask: Handle | None) -> tuple[Handle, Handle | None]:
    """Grouped queries: q's heads as (heads of k, queries per head), so that k and v need no repeating."""
    heads, shared = q.shape[-3], k.shape[-3]
    if v.shape[-3] != shared:
        raise NotNative("grouped attention with different numbers of key and value heads")

    def split(x: Handle) -> Handle:
        pair = (shared, heads // shared) if x.shape[-3] == heads else (1, 1)
        return reshaped(x, (*x.shape[:-3], *pair, *x.shape[-2:]))

    if mask is not None and mask.ndim > 2:
        mask = split(mask)
    return split(q), mask


_ATTENTION = [
    sample(floats(2, 3, 5, 4), floats(2, 3, 7, 4), floats(2, 3, 7, 6)),
    sample(floats(2, 3, 5, 4), floats(2, 3, 5, 4), floats(2, 3, 5, 4), None, 0.0, True),
    sample(floats(2, 3, 5, 4), floats(2, 3, 7, 4), floats(2, 3, 7, 4), bools(2, 1, 5, 7)),
    sample(floats(3, 5, 4), floats(3, 7, 4), floats(3, 7, 4), floats(5, 7), scale=0.3),
    sample(
        floats(2, 6, 5, 4), floats(2, 2, 7, 4), floats(2, 2, 7, 4), bools(2, 6, 5, 7),
        enable_gqa=True,
    ),
]  # fmt: skip


@composite("scaled_dot_product_attention", samples=_ATTENTION)
def scaled_dot_product_attention(
    query: Handle,
    key: Handle,
    value: Handle,
    attn_mask: Handle | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Handle:
    """``softmax(query @ key.T * scale + attn_mask) @ value``; scale is 1/sqrt(d) if not given.

    query [..., heads, i, d], key [..., heads, j, d], value [..., heads, j, e]: the result is [..., heads, i, e].
    A bool mask says what is seen.  With enable_gqa, key and value have fewer heads, each for a group of
    queries.
    """
    if dropout_p > 0:
        raise NotNative("attention with dropout draws random numbers")
    q, k, v, mask = query, key, value, attn_mask
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        q, mask = _grouped(q, k, v, mask)
    else:
        batch = broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
        q, k, v = (broadcast_to(x, (*batch, *x.shape[-2:])) for x in (q, k, v))
    out, _ = attend(q, k, v, mask, is_causal, scale)
    lead = q.shape[:-2] if q.ndim == query.ndim else query.shape[:-2]
    return cast(reshaped(out, (*lead, *out.shape[-2:])), query.dtype)


@composite(
    "_scaled_dot_product_flash_attention_for_cpu",
    samples=[
        sample(floats(2, 3, 5, 4), floats(2, 3, 7, 4), floats(2, 3, 7, 4)),
        sample(floats(2, 3, 5, 4), floats(2, 3, 5, 4), floats(2, 3, 5, 4), 0.0, True, scale=0.3),
        sample(
            floats(2, 3, 5, 4), floats(2, 3, 7, 4), floats(2, 3, 7, 4), attn_mask=floats(2, 1, 5, 7)
        ),
        sample(floats(2, 6, 5, 4), floats(2, 2, 7, 4), floats(2, 2, 7, 4)),
    ],
)
def flash_attention_for_cpu(
    query: Handle,
    key: Handle,
    value: Handle,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Handle | None = None,
    scale: float | None = None,
) -> tuple[Handle, Handle]:
    """As scaled_dot_product_attention; also the logarithms of the softmax's denominators [b, heads, i].

    key and value may have fewer heads than query, each for a group of queries.
    """
    if dropout_p > 0:
        raise NotNative("attention with dropout draws random numbers")
    q, mask = query, attn_mask
    if query.shape[-3] != key.shape[-3]:
        q, mask = _grouped(query, key, value, attn_mask)
    out, logs = attend(q, key, value, mask, is_causal, scale)
    out = reshaped(out, (*query.shape[:-1], value.shape[-1]))
    return cast(out, query.dtype), reshaped(logs, query.shape[:-1])
