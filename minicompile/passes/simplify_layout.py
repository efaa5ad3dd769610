"""Laws about layouts and reductions, for the pass simplify: fewer index computations, same elements."""

from __future__ import annotations

from minicompile.ir.graph import Node, Value
from minicompile.ops import layout
from minicompile.ops.build import Handle, wrap
from minicompile.ops.registry import Kind, kind_of
from minicompile.passes.rewrite import Defs, Result, Rule, rule, same_number

Ints = tuple[int, ...]


def source(node: Node) -> Value:
    """The first operand."""
    return node.operands[0]


def no_ones(shape: Ints) -> Ints:
    return tuple(n for n in shape if n != 1)


@rule(
    "layout(x) -> x, if nothing moves",
    "reshape",
    "permute",
    "slice",
    "broadcast",
    "flip",
    "pad",
    "concat",
)
def layout_identity(node: Node, defs: Defs) -> Result:
    x = source(node)
    if len(node.operands) != 1 or x.type.pure() != node.out.type:
        return None
    order = tuple(range(x.type.ndim))
    same = {
        "permute": lambda: node.ints("dims") == order,
        "broadcast": lambda: node.ints("dims") == order,
        "flip": lambda: all(x.type.dims[d] == 1 for d in node.ints("dims")),
    }
    return x if same.get(node.op, lambda: True)() else None


@rule("reshape(reshape(x)) -> reshape(x)", "reshape")
def reshape_reshape(node: Node, defs: Defs) -> Result:
    inner = defs.of(node.args[0], "reshape")
    return None if inner is None else layout.reshape(wrap(source(inner)), shape=node.out.type.shape)


@rule("permute(permute(x)) -> permute(x)", "permute")
def permute_permute(node: Node, defs: Defs) -> Result:
    inner = defs.of(node.args[0], "permute")
    if inner is None:
        return None
    first = inner.ints("dims")
    return layout.permute(wrap(source(inner)), dims=tuple(first[d] for d in node.ints("dims")))


@rule("permute(x) -> reshape(x), if only axes of size 1 move", "permute")
def permute_ones(node: Node, defs: Defs) -> Result:
    x = source(node)
    moved = [d for d in node.ints("dims") if x.type.dims[d] != 1]
    return layout.reshape(wrap(x), shape=node.out.type.shape) if moved == sorted(moved) else None


@rule("broadcast(broadcast(x)) -> broadcast(x)", "broadcast")
def broadcast_broadcast(node: Node, defs: Defs) -> Result:
    inner = defs.of(node.args[0], "broadcast")
    if inner is None:
        return None
    outer = node.ints("dims")
    dims = tuple(outer[d] for d in inner.ints("dims"))
    return layout.broadcast(wrap(source(inner)), shape=node.out.type.shape, dims=dims)


@rule("broadcast(x) -> reshape(x), if it only adds axes of size 1", "broadcast")
def broadcast_ones(node: Node, defs: Defs) -> Result:
    x, dims = source(node), node.ints("dims")
    only_ones = no_ones(x.type.dims) == no_ones(node.out.type.dims) and list(dims) == sorted(dims)
    return layout.reshape(wrap(x), shape=node.out.type.shape) if only_ones else None


@rule("broadcast(reshape(x)) -> broadcast(x), if the reshape only adds axes of size 1", "broadcast")
def broadcast_reshape(node: Node, defs: Defs) -> Result:
    """The keepdim of a reduction: f32[4] -> f32[4, 1] -> f32[4, 8]."""
    inner = defs.of(node.args[0], "reshape")
    if inner is None:
        return None
    x, middle = source(inner), inner.out.type.dims
    if 1 in x.type.dims or no_ones(middle) != x.type.dims:
        return None
    dims = tuple(d for d, n in zip(node.ints("dims"), middle) if n != 1)
    return layout.broadcast(wrap(x), shape=node.out.type.shape, dims=dims)


@rule("permute(broadcast(x)) -> broadcast(x)", "permute")
def permute_broadcast(node: Node, defs: Defs) -> Result:
    inner = defs.of(node.args[0], "broadcast")
    if inner is None:
        return None
    order = node.ints("dims")
    dims = tuple(order.index(d) for d in inner.ints("dims"))
    return layout.broadcast(wrap(source(inner)), shape=node.out.type.shape, dims=dims)


@rule("slice(slice(x)) -> slice(x)", "slice")
def slice_slice(node: Node, defs: Defs) -> Result:
    inner = defs.of(node.args[0], "slice")
    if inner is None or 0 in node.out.type.dims:
        return None
    outer = zip(node.ints("starts"), node.ints("steps"), node.out.type.dims)
    ranges = [
        (a + s * b, a + s * (b + t * (n - 1)) + 1, s * t)
        for a, s, (b, t, n) in zip(inner.ints("starts"), inner.ints("steps"), outer)
    ]
    return sliced(source(inner), ranges)


def sliced(x: Value, ranges: list[tuple[int, int, int]]) -> Handle:
    starts, stops, steps = zip(*ranges)
    return layout.slice_(wrap(x), starts=starts, stops=stops, steps=steps)


@rule("slice(concat(x, y)) -> slice(x), if it falls into one operand", "slice")
def slice_concat(node: Node, defs: Defs) -> Result:
    inner = defs.of(node.args[0], "concat")
    if inner is None or 0 in node.out.type.dims:
        return None
    (dim,) = inner.ints("dim")
    ranges = list(zip(node.ints("starts"), node.ints("stops"), node.ints("steps")))
    start, stop, step = ranges[dim]
    for x in inner.operands:
        n = x.type.dims[dim]
        if start >= 0 and stop <= n:
            ranges[dim] = (start, stop, step)
            return sliced(x, ranges)
        start, stop = start - n, stop - n
    return None


@rule("concat(x, y of no elements) -> concat(x)", "concat")
def concat_empty(node: Node, defs: Defs) -> Result:
    (dim,) = node.ints("dim")
    real = [x for x in node.operands if x.type.dims[dim]]
    if not real or len(real) == len(node.operands):
        return None
    return layout.concat(*map(wrap, real), dim=dim)


@rule("flip(flip(x)) -> flip(x)", "flip")
def flip_flip(node: Node, defs: Defs) -> Result:
    inner = defs.of(node.args[0], "flip")
    if inner is None:
        return None
    dims = tuple(sorted({*inner.ints("dims")} ^ {*node.ints("dims")}))
    return layout.flip(wrap(source(inner)), dims=dims) if dims else source(inner)


@rule("pad(pad(x, v), v) -> pad(x, v)", "pad")
def pad_pad(node: Node, defs: Defs) -> Result:
    inner = defs.of(node.args[0], "pad")
    a, b = node.attr("value"), inner.attr("value") if inner else None
    if inner is None or not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return None
    if not same_number(a, b):
        return None
    low, high = (
        tuple(p + q for p, q in zip(inner.ints(side), node.ints(side))) for side in ("low", "high")
    )
    return layout.pad(wrap(source(inner)), low=low, high=high, value=a)


@rule("reduce(x over axes of size 1) -> reshape(x)")
def reduce_ones(node: Node, defs: Defs) -> Result:
    if kind_of(node.op) is not Kind.REDUCTION:
        return None
    x = source(node)
    dims = node.ints("dims")
    if any(x.type.dims[d] != 1 for d in dims):
        return None
    starts_at_zero = dims and node.op == "reduce_sum" and x.type.dtype.is_float
    value = Handle(x) + 0.0 if starts_at_zero else Handle(x)  # the sum of one -0.0 is 0.0
    return layout.reshape(value, shape=node.out.type.shape)


LAYOUT_RULES: tuple[Rule, ...] = (
    layout_identity, reshape_reshape, permute_permute, permute_ones, broadcast_broadcast, broadcast_ones,
    broadcast_reshape, permute_broadcast, slice_slice, slice_concat, concat_empty, flip_flip, pad_pad,
    reduce_ones,
)  # fmt: skip
