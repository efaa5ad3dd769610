"""Which Externs may be merged or dropped: what PyTorch's own schemas say about an op.

A random op advances the generator even when nobody reads its result; an op that mutates, or whose schema
is unknown here, may do anything.  Only ATen ops without either are pure.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from minicompile.ir.graph import Node

_PREFIX = "torch_ops."


@cache
def overload(op: str) -> Any:
    """The torch op named ``aten.mm``, ``aten.add.Tensor`` or ``torch_ops.NS.NAME.OVERLOAD``; or None."""
    parts = op.removeprefix(_PREFIX).split(".")
    namespace, name, version = (*parts, "default")[:3]
    packet = getattr(getattr(torch.ops, namespace, None), name, None)
    return getattr(packet, version or "default", None)


@cache
def mutates(op: str) -> bool:
    """Does this op write to its arguments? False for our own primitives."""
    if "." not in op:
        return False
    found = overload(op)
    return found is not None and bool(found._schema.is_mutable)


@cache
def pure(op: str) -> bool:
    """May two equal calls be one, and an unread one be dropped?"""
    if "." not in op:
        return True
    found = overload(op)
    if found is None or not op.startswith("aten."):
        return False
    random = torch.Tag.nondeterministic_seeded in found.tags
    return not random and not mutates(op)


def removable(node: Node) -> bool:
    """May this node go when nobody reads its results? Nodes without results are there for an effect."""
    return bool(node.outs) and pure(node.op)
