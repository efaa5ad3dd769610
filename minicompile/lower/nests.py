"""The loop nest that computes one materialised value: one case per kind of primitive."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from minicompile.ir.graph import Node
from minicompile.ir.index import Index, Quotient, ix
from minicompile.ir.loop import Accumulate, Alloc, Bind, Call, Expr, For, Load, Name, Stmt, Store
from minicompile.ir.types import TensorType
from minicompile.ir.walk import rewrite, substitute, walk
from minicompile.lower.element import Indices, KernelScope, Scope, loaded_index
from minicompile.ops.gather import parse_spec
from minicompile.ops.registry import PRIMITIVES, Kind, identity

Splits = dict[tuple[str, int], tuple[int, ...]]  # (letter, axis) -> the factors of its extent


def nest(kernel: KernelScope, node: Node) -> list[Stmt]:
    """Loops that compute `node` and store it in the buffer of its name.

    An axis whose loop variable ends up below a // or % (from a reshape) is split by that number and the
    nest is made again: law, for i = c*i0 + i1 with 0 <= i1 < c:  i // c = i0  and  i % c = i1.
    """
    splits: Splits = {}
    make = _NEST.get(PRIMITIVES[node.op].kind, _elementwise_nest)
    for _ in range(8):
        trial = replace(
            kernel,
            taken=set(kernel.taken),
            loads=dict(kernel.loads),
            aliases=dict(kernel.aliases),
            storing=node.out.name,
        )
        stmts = make(trial, node, splits)
        split = _split_wanted(stmts)
        if split is None:
            break
        (letter, axis, part), factors = split
        old = splits.get((letter, axis), (0,))
        splits = {**splits, (letter, axis): (*old[:part], *factors, *old[part + 1 :])}
    kernel.taken, kernel.loads, kernel.aliases = trial.taken, trial.loads, trial.aliases
    return _named_loops(kernel, stmts)


def _named_loops(kernel: KernelScope, stmts: list[Stmt]) -> list[Stmt]:
    """The same nest with loop variables that no other nest of the kernel has: i0_0 -> i0, or i0__1, ..."""
    new: dict[str, str] = {}
    for loop in (s for s in walk(tuple(stmts)) if isinstance(s, For)):
        short = loop.var.removesuffix("_0")
        new.setdefault(loop.var, kernel.fresh(short))
    renamed = substitute(tuple(stmts), {old: ix(name) for old, name in new.items()})
    return list(rewrite(renamed, lambda s: replace(s, var=new[s.var]) if isinstance(s, For) else s))


def _split_wanted(stmts: list[Stmt]) -> tuple[tuple[str, int, int], tuple[int, int]] | None:
    """((letter, axis, part), (outer, inner)) of a loop that a Quotient wants split; None if there is none."""
    loops = {s.var: s.extent for s in walk(tuple(stmts)) if isinstance(s, For)}
    for q in quotients(tuple(stmts)):
        for var, coef in q.index.terms:
            if not (isinstance(var, str) and var in loops and coef > 0):
                continue
            by = q.by // coef  # (coef*v + ...) // q.by turns over every `by` steps of v
            if q.by % coef or loops[var] % by or not 1 < by < loops[var]:
                continue
            axis, part = map(int, var[1:].split("_"))
            return (var[0], axis, part), (loops[var] // by, by)
    return None


def quotients(node: object) -> Iterator[Quotient]:
    """Every // and % in the indices below `node`, innermost first."""

    def of(index: Index) -> Iterator[Quotient]:
        for atom, _ in index.terms:
            if isinstance(atom, Quotient):
                yield from of(atom.index)
                yield atom

    for n in walk(node):
        if isinstance(n, Index):
            yield from of(n)


# ---------------------------------------------------------------------------------- loops


def space(
    dims: Sequence[int], splits: Splits, letter: str = "i"
) -> tuple[list[tuple[str, int]], Indices]:
    """Loop variables for these dimensions, and the index they form.

    Dimension d split into factors (a, b) gets variables i{d}_0 < a and i{d}_1 < b; its index is
    i{d}_0*b + i{d}_1. Dimensions of size 1 need no loop.
    """
    loops: list[tuple[str, int]] = []
    index: list[Index] = []
    for d, n in enumerate(dims):
        factors = splits.get((letter, d), (n,))
        terms: list[tuple[str, int]] = []
        step = 1
        for part in range(len(factors) - 1, -1, -1):
            if factors[part] != 1:
                terms.insert(0, (f"{letter}{d}_{part}", step))
                loops.insert(len(loops) - len(terms) + 1, (f"{letter}{d}_{part}", factors[part]))
            step *= factors[part]
        index.append(Index(tuple(terms)))
    return loops, tuple(index)


def loop_nest(loops: list[tuple[str, int]], body: list[Stmt]) -> list[Stmt]:
    """The body inside these loops, the first outermost; nothing at all if one of them never runs."""
    if any(n == 0 for _, n in loops):
        return []
    for var, n in reversed(loops):
        body = [For(var, n, "serial", tuple(body))]
    return body


# ---------------------------------------------------------------------------------- kinds


def _elementwise_nest(kernel: KernelScope, node: Node, splits: Splits) -> list[Stmt]:
    loops, index = space(node.out.type.dims, splits)
    scope = Scope(kernel, dict(loops))
    hidden = kernel.memory.pop(node.out.name)  # compute it here, do not load it
    kernel.taken.discard(node.out.name)
    value = scope.element(node.out, index)
    kernel.memory[node.out.name] = hidden
    kernel.taken.add(node.out.name)
    body = scope.stmts
    last = body[-1] if body else None
    if isinstance(last, Bind) and last.name == node.out.name:
        body, value = body[:-1], last.value
    return loop_nest(loops, [*body, Store(node.out.name, index, value, node.origins)])


def _accumulate_nest(
    kernel: KernelScope,
    node: Node,
    outer: list[tuple[str, int]],
    inner: list[tuple[str, int]],
    index: Indices,
    term: Callable[[Scope], Expr],
) -> list[Stmt]:
    """acc = identity; for inner: acc op= term; result = acc."""
    combine, dtype = PRIMITIVES[node.op].combine, node.out.type.dtype
    acc = kernel.fresh(f"{node.out.name}_acc")
    start = Scope(kernel).operand(identity(combine, dtype), (), dtype)
    scope = Scope(kernel, dict(outer + inner))
    value = term(scope)
    update = Accumulate(acc, (), value, combine, node.origins)
    body: list[Stmt] = [
        Alloc(acc, TensorType(dtype), "register", node.origins),
        Store(acc, (), start, node.origins),
        *loop_nest(inner, [*scope.stmts, update]),
        Store(node.out.name, index, Load(acc, (), dtype), node.origins),
    ]
    return loop_nest(outer, body)


def _reduction_nest(kernel: KernelScope, node: Node, splits: Splits) -> list[Stmt]:
    (x,) = node.operands
    dims = node.ints("dims")
    outer, index = space(node.out.type.dims, splits)
    inner, reduced = space([x.type.dims[d] for d in sorted(dims)], splits, "r")
    kept, over = iter(index), iter(reduced)
    full = tuple(next(over) if d in dims else next(kept) for d in range(x.type.ndim))
    return _accumulate_nest(kernel, node, outer, inner, index, lambda s: s.element(x, full))


# Multiply-adds up to which a contraction rounds each product before it adds it, as PyTorch's kernels for
# small matrices do; beyond, `acc += a * b` becomes one fused multiply-add, and `tile` takes it over.
SMALL = 2048


def _contraction_nest(kernel: KernelScope, node: Node, splits: Splits) -> list[Stmt]:
    a, b = node.operands
    (sa, sb), out = parse_spec(str(node.attr("spec")))
    sizes = dict(zip(sa + sb, a.type.dims + b.type.dims))
    summed = [axis for axis in sizes if axis not in out]
    outer, index = space(node.out.type.dims, splits)
    inner, over = space([sizes[axis] for axis in summed], splits, "r")
    at = {**dict(zip(out, index)), **dict(zip(summed, over))}
    rounded = kernel.fresh(f"{node.out.name}_product")

    def term(s: Scope) -> Expr:
        left = s.element(a, tuple(at[axis] for axis in sa))
        right = s.element(b, tuple(at[axis] for axis in sb))
        product = Call("mul", (left, right), node.out.type.dtype)
        if math.prod(sizes.values()) > SMALL:
            return product
        s.stmts.append(Bind(rounded, product, node.out.type.dtype, node.origins))
        return Name(rounded, node.out.type.dtype)

    return _accumulate_nest(kernel, node, outer, inner, index, term)


def _scan_nest(kernel: KernelScope, node: Node, splits: Splits) -> list[Stmt]:
    (x,) = node.operands
    (dim,) = node.ints("dim")
    combine, dtype = PRIMITIVES[node.op].combine, node.out.type.dtype
    loops, index = space(node.out.type.dims, splits)
    along = [(v, n) for v, n in loops if v.startswith(f"i{dim}_")]
    acc = kernel.fresh(f"{node.out.name}_acc")
    start = Scope(kernel).operand(identity(combine, dtype), (), dtype)
    scope = Scope(kernel, dict(loops))
    value = scope.element(x, index)
    step: list[Stmt] = [
        *scope.stmts,
        Accumulate(acc, (), value, combine, node.origins),
        Store(node.out.name, index, Load(acc, (), dtype), node.origins),
    ]
    init: list[Stmt] = [
        Alloc(acc, TensorType(dtype), "register", node.origins),
        Store(acc, (), start, node.origins),
    ]
    return loop_nest([v for v in loops if v not in along], [*init, *loop_nest(along, step)])


def _scatter_nest(kernel: KernelScope, node: Node, splits: Splits) -> list[Stmt]:
    x, src, *tables = node.operands
    dims = node.ints("dims")
    loops, index = space(node.out.type.dims, splits)
    copy = Scope(kernel, dict(loops))
    first = copy.element(x, index)
    copied = loop_nest(loops, [*copy.stmts, Store(node.out.name, index, first, node.origins)])

    over, at = space(src.type.dims, splits, "s")
    scope = Scope(kernel, dict(over))
    head, rest = at[: tables[0].type.ndim], list(at[tables[0].type.ndim :])
    where = {d: loaded_index(scope, t, head, x.type.dims[d], node) for d, t in zip(dims, tables)}
    target = tuple(where[d] if d in where else rest.pop(0) for d in range(x.type.ndim))
    value = scope.element(src, at)
    combine = str(node.attr("combine"))
    if combine == "set":
        scope.stmts.append(Store(node.out.name, target, value, node.origins))
    else:
        scope.stmts.append(Accumulate(node.out.name, target, value, combine, node.origins))
    return copied + loop_nest(over, scope.stmts)


_NEST: dict[Kind, Callable[[KernelScope, Node, Splits], list[Stmt]]] = {
    Kind.REDUCTION: _reduction_nest,
    Kind.CONTRACTION: _contraction_nest,
    Kind.SCAN: _scan_nest,
    Kind.SCATTER: _scatter_nest,
}
