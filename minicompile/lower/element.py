"""One element of a value, as a loop expression: one case per kind of primitive.

A `Scope` writes statements at one place of a nest. `element(v, index)` gives one element of the value v
as an expression, by walking up the graph: memory is loaded, elementwise ops become calls (each bound to
the value's own name), layouts rewrite the index, creations become expressions of the index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from minicompile.ir.graph import Arg, Node, Value
from minicompile.ir.index import Index, bounds, ix
from minicompile.ir.loop import Bind, Call, Check, Const, Expr, If, IndexValue, Load, Name, Stmt
from minicompile.ir.types import DType, TensorType, bool_, contiguous_strides
from minicompile.ops.registry import PRIMITIVES, Arm, Kind

Indices = tuple[Index, ...]


@dataclass
class KernelScope:
    """What all nests of one kernel share: the graph around it, its buffers, and its names."""

    producers: dict[str, Node]
    memory: dict[str, TensorType]  # value -> type of the memory it is in
    own: frozenset[str] = frozenset()  # those that this kernel writes
    aliases: dict[str, str] = field(default_factory=dict)  # reshaped view -> buffer
    loads: dict[str, TensorType] = field(default_factory=dict)  # what the kernel reads, in order
    taken: set[str] = field(default_factory=set)
    storing: str = ""  # the value whose nest is being made

    def fresh(self, base: str) -> str:
        name, n = base, 0
        while name in self.taken:
            n += 1
            name = f"{base}__{n}"
        self.taken.add(name)
        return name

    def row_major_memory(self, v: Value) -> str | None:
        """The contiguous buffer, written by another kernel, that v is merely a reshape of, if any.

        (Memory that this kernel writes has one name only, so that its dependences are plain.)
        """
        name = v.name
        while name not in self.memory:
            node = self.producers.get(name)
            if node is None or node.is_extern or not PRIMITIVES[node.op].row_major:
                return None
            name = node.operands[0].name
        if name in self.own:
            return None
        type = self.memory[name]
        dense = type.strides is None or type.strides == contiguous_strides(type.dims)
        return name if dense else None


@dataclass
class Scope:
    """A place in a nest where statements are written. `pure` forbids binding (below a condition)."""

    kernel: KernelScope
    extents: dict[str, int] = field(default_factory=dict)
    stmts: list[Stmt] = field(default_factory=list)
    memo: dict[tuple[str, Indices], Expr] = field(default_factory=dict)
    pure: bool = False

    def inner(self) -> Scope:
        """A scope for the body of a loop here: sees what is bound so far."""
        return replace(self, stmts=[], memo=dict(self.memo))

    # ------------------------------------------------------------------ one element

    def element(self, v: Value, index: Indices) -> Expr:
        key = (v.name, index)
        if key not in self.memo:
            e = self._element(v, index)
            if self.pure:
                return e
            self.memo[key] = e
        return self.memo[key]

    def _element(self, v: Value, index: Indices) -> Expr:
        kernel = self.kernel
        if v.name in kernel.memory:
            kernel.loads.setdefault(v.name, kernel.memory[v.name])
            return Load(v.name, index, v.type.dtype)
        base = kernel.row_major_memory(v)
        if base is not None:
            name = v.name if v.name != kernel.storing else f"{v.name}_from_{base}"
            kernel.aliases[name] = base
            kernel.loads.setdefault(name, v.type)
            return Load(name, index, v.type.dtype)
        node = kernel.producers[v.name]
        return _ELEMENT[PRIMITIVES[node.op].kind](self, node, index)

    def operand(self, a: Arg, index: Indices, dtype: DType) -> Expr:
        if isinstance(a, Value):
            return self.element(a, index)
        assert isinstance(a, (bool, int, float)), f"{a!r} is no operand"
        return Const(_as(dtype, a), dtype)

    def bind(self, node: Node, e: Expr) -> Expr:
        """Give e the value's own name, unless a condition forbids statements here."""
        if self.pure:
            return e
        name = self.kernel.fresh(node.out.name)
        self.stmts.append(Bind(name, e, node.out.type.dtype, node.origins))
        return Name(name, node.out.type.dtype)


def _as(dtype: DType, x: bool | int | float) -> bool | int | float:
    """A Python literal as a constant of this dtype: 2 is 2.0 among floats."""
    return float(x) if dtype.is_float else bool(x) if dtype is bool_ else int(x)


def _elementwise(scope: Scope, node: Node, index: Indices) -> Expr:
    # A literal has the dtype of the last tensor operand: where(cond, 0.0, x), lt(x, 1.0).
    literal = node.operands[-1].type.dtype
    args = tuple(scope.operand(a, index, literal) for a in node.args)
    return scope.bind(node, Call(node.op, args, node.out.type.dtype))


def _layout(scope: Scope, node: Node, index: Indices) -> Expr:
    read_of = PRIMITIVES[node.op].read
    assert read_of is not None, f"layout {node.op} has no `read`"
    xs = node.operands
    read = read_of([x.type for x in xs], dict(node.attrs), index, scope.extents)
    arms = _possible(read.arms, scope.extents)
    if arms and not arms[0].conds:
        return scope.element(xs[arms[0].operand], arms[0].index)
    # An arm is evaluated only where it is chosen, so nothing in it may be bound before.
    guarded = replace(scope, pure=True)
    result: Expr | None = None
    if read.other is not None:
        result = Const(_as(node.out.type.dtype, read.other), node.out.type.dtype)
    for arm in reversed(arms):
        value = guarded.element(xs[arm.operand], arm.index)
        assert not arm.conds or result is not None, (
            f"{node.op} reads nowhere outside its conditions"
        )
        result = If(arm.conds, value, result) if arm.conds and result is not None else value
    assert result is not None, f"layout {node.op} reads nothing"
    return scope.bind(node, result)


def _possible(arms: Sequence[Arm], extents: dict[str, int]) -> list[Arm]:
    """The arms that may be chosen for some element, without the conditions that always hold."""
    possible: list[Arm] = []
    for arm in arms:
        spans = [bounds(i, extents) for _, i, _ in arm.conds]
        pairs = list(zip(arm.conds, spans))
        if any(lo >= hi or (s and (s[1] < lo or s[0] >= hi)) for (lo, _, hi), s in pairs):
            continue
        open_ = [c for c, s in pairs if s is None or s[0] < c[0] or s[1] >= c[2]]
        possible.append(replace(arm, conds=tuple(open_)))
        if not open_:
            break
    return possible


def _creation(scope: Scope, node: Node, index: Indices) -> Expr:
    element = PRIMITIVES[node.op].element
    assert element is not None, f"creation {node.op} has no `element`"
    result: Expr = element(dict(node.attrs), index)
    return result


def _gather(scope: Scope, node: Node, index: Indices) -> Expr:
    x, *tables = node.operands
    dims = node.ints("dims")
    at, rest = index[: tables[0].type.ndim], list(index[tables[0].type.ndim :])
    loaded = {d: loaded_index(scope, t, at, x.type.dims[d], node) for d, t in zip(dims, tables)}
    return scope.element(
        x, tuple(loaded[d] if d in loaded else rest.pop(0) for d in range(x.type.ndim))
    )


def loaded_index(scope: Scope, table: Value, at: Indices, size: int, node: Node) -> Index:
    """The element of an index tensor as an index: bound to a name, and checked to be in 0 ... size-1."""
    e = scope.element(table, at)
    if isinstance(e, IndexValue):
        index = e.index
    elif isinstance(e, Name):
        index = ix(e.name)
    else:
        name = scope.kernel.fresh(f"{node.out.name}_at")
        scope.stmts.append(Bind(name, e, table.type.dtype, node.origins))
        scope.memo[table.name, at] = Name(name, table.type.dtype)
        index = ix(name)
    span = bounds(index, scope.extents)
    if span is None or span[0] < 0 or span[1] >= size:
        check = Check(index, size, node.origins)
        if check not in scope.stmts:
            scope.stmts.append(check)
    return index


_ELEMENT: dict[Kind, Callable[[Scope, Node, Indices], Expr]] = {
    Kind.ELEMENTWISE: _elementwise,
    Kind.LAYOUT: _layout,
    Kind.CREATION: _creation,
    Kind.GATHER: _gather,
}
