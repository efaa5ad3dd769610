"""Writing graphs by running Python: a Handle is a graph value with operators.

    with Builder("t2") as b:
        m = reduce_max(x, dims=(1,))
        e = exp(x - m)                       # operands are broadcast to a common shape
        b.nodes                              # the primitives, named t2_0, t2_1, ...

Composite bodies (ops/*.py) are such functions.  Nothing is promoted here: the operands of an
elementwise primitive have one dtype; use `cast`, or `ops.aten.promoted`, first.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from types import TracebackType
from typing import Any

from minicompile.errors import NotNative
from minicompile.ir.graph import Arg, Node, Value, map_values
from minicompile.ir.types import Dim, DType, Shape, TensorType
from minicompile.ops.registry import PRIMITIVES, Kind

_current: contextvars.ContextVar[Builder | None] = contextvars.ContextVar("builder", default=None)


class Builder:
    """Collects the nodes emitted inside its `with` block. `prefix` names them: t2 -> t2_0, t2_1, ..."""

    def __init__(self, prefix: str, taken: Callable[[str], bool] | None = None) -> None:
        self.prefix, self.nodes = prefix, list[Node]()
        self._taken = taken or (lambda name: False)
        self._count = 0

    def __enter__(self) -> Builder:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        _current.reset(self._token)

    def fresh(self) -> str:
        while True:
            name = f"{self.prefix}_{self._count}"
            self._count += 1
            if not self._taken(name):
                return name

    def add(
        self, op: str, args: tuple[Arg, ...], attrs: dict[str, Arg], type: TensorType
    ) -> Handle:
        value = Value(self.fresh(), type)
        self.nodes.append(Node(op, args, tuple(attrs.items()), (value,)))
        return Handle(value)


def builder() -> Builder:
    current = _current.get()
    if current is None:
        raise RuntimeError("ops can only be emitted inside `with Builder(...)`")
    return current


class Handle:
    """A value being built: a graph Value with Python's operators."""

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def type(self) -> TensorType:
        return self.value.type

    @property
    def dtype(self) -> DType:
        return self.value.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.type.dims

    @property
    def ndim(self) -> int:
        return self.value.type.ndim

    def __repr__(self) -> str:
        return f"{self.value.name}: {self.type}"

    def __add__(self, o: Any) -> Handle:
        return emit("add", self, o)

    def __radd__(self, o: Any) -> Handle:
        return emit("add", o, self)

    def __sub__(self, o: Any) -> Handle:
        return emit("sub", self, o)

    def __rsub__(self, o: Any) -> Handle:
        return emit("sub", o, self)

    def __mul__(self, o: Any) -> Handle:
        return emit("mul", self, o)

    def __rmul__(self, o: Any) -> Handle:
        return emit("mul", o, self)

    def __truediv__(self, o: Any) -> Handle:
        return emit("div", self, o)

    def __rtruediv__(self, o: Any) -> Handle:
        return emit("div", o, self)

    def __neg__(self) -> Handle:
        return emit("neg", self)

    def __lt__(self, o: Any) -> Handle:
        return emit("lt", self, o)

    def __le__(self, o: Any) -> Handle:
        return emit("le", self, o)

    def __gt__(self, o: Any) -> Handle:
        return emit("gt", self, o)

    def __ge__(self, o: Any) -> Handle:
        return emit("ge", self, o)

    def __and__(self, o: Any) -> Handle:
        return emit("bitand", self, o)

    def __or__(self, o: Any) -> Handle:
        return emit("bitor", self, o)

    def __xor__(self, o: Any) -> Handle:
        return emit("bitxor", self, o)

    def __invert__(self) -> Handle:
        return emit("bitnot", self)


def emit(op: str, *args: Any, **attrs: Any) -> Handle:
    """Add one primitive to the current builder; its type is inferred and its arguments are checked."""
    entry = PRIMITIVES[op]
    if entry.kind is Kind.ELEMENTWISE:
        args = broadcast_all(*args)
    plain = tuple(unwrap(a) for a in args)
    plain_attrs = {k: unwrap(v) for k, v in attrs.items()}
    check_domain(op, *(a.dtype for a in args if isinstance(a, Handle)))
    type = entry.infer(*(types_of(a) for a in plain), **plain_attrs)
    check_domain(op, type.dtype, domain="fiub")
    return builder().add(op, plain, plain_attrs, type)


def check_domain(op: str, *dtypes: DType, domain: str = "") -> None:
    """NotNative when the primitive is not defined on a dtype: the ATen op then stays Extern."""
    for dtype in dtypes:
        if dtype.kind not in (domain or PRIMITIVES[op].domain):
            raise NotNative(f"{op} is not defined on {dtype}")


def unwrap(a: Any) -> Any:
    """Handles to Values, lists and ranges to tuples."""
    if isinstance(a, Handle):
        return a.value
    if isinstance(a, (tuple, list, range)):
        return tuple(unwrap(x) for x in a)
    return a


def wrap(a: Any) -> Any:
    """Values to Handles."""
    if isinstance(a, Value):
        return Handle(a)
    if isinstance(a, tuple):
        return tuple(wrap(x) for x in a)
    return a


def types_of(a: Arg) -> Any:
    """Values to their types, for `infer`."""
    return map_values(a, lambda v: v.type)  # type: ignore[arg-type, return-value]


def broadcast_shapes(*shapes: Shape) -> Shape:
    """PyTorch's broadcasting rule. TypeError when the shapes do not go together."""
    out: list[Dim] = []
    for i in range(1, max(map(len, shapes), default=0) + 1):
        dims = [s[-i] for s in shapes if len(s) >= i]
        real = [d for d in dims if d != 1]
        if any(d != real[0] for d in real):
            raise TypeError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        out.append(real[0] if real else 1)
    return tuple(reversed(out))


def broadcast_to(x: Handle, shape: Shape) -> Handle:
    """x seen with `shape`, new dimensions in front, as `Tensor.expand`; x itself if nothing changes."""
    if x.type.shape == tuple(shape):
        return x
    dims = tuple(range(len(shape) - x.ndim, len(shape)))
    return emit("broadcast", x, shape=tuple(shape), dims=dims)


def broadcast_all(*args: Any) -> tuple[Any, ...]:
    """Every tensor among `args` seen with their common shape; Python numbers stay as they are."""
    shapes = [a.type.shape for a in args if isinstance(a, Handle)]
    if not shapes:
        raise TypeError("an elementwise op needs at least one tensor; use `full` for a constant")
    shape = broadcast_shapes(*shapes)
    return tuple(broadcast_to(a, shape) if isinstance(a, Handle) else a for a in args)
