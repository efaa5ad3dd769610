"""Who shares memory with whom: bases, views of them, and their present values.

`Memory` follows the tensors of the eager program while a graph is made pure.  Reading a tensor gives its
present value, and takes a view again whose base has changed; writing puts a new value back along the
chain of views.  What that needs is emitted as nodes that say `why`.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicompile.capture import layouts
from minicompile.capture.views import View, inverse, scatter
from minicompile.errors import CompileError
from minicompile.ir.graph import Arg, Graph, Node, Value, map_values
from minicompile.ir.types import TensorType

Attrs = tuple[tuple[str, Arg], ...]


@dataclass
class Base:
    """Memory of its own: its present value, how often it was written, the argument it is (or None)."""

    value: Value
    argument: Value | None = None
    version: int = 0


@dataclass(eq=False)
class Alias:
    """A tensor of the eager program: a base, or (with `view`) a view of `parent`.

    `value` is the pure value last read or written through it, right while `version` is the base's.
    """

    name: str
    base: Base
    value: Value
    parent: Alias | None = None
    view: View | None = None
    version: int = 0

    @property
    def chain(self) -> list[View]:
        """The views from the base to here."""
        if self.parent is None or self.view is None:
            return []
        return [*self.parent.chain, self.view]

    @property
    def root(self) -> Alias:
        """The tensor that is the base itself."""
        return self if self.parent is None else self.parent.root


class Memory:
    """The tensors of a captured graph by name, and the pure nodes made so far."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.tensors: dict[str, Alias] = {}
        self.names = {v.name for v in graph.arguments}
        self.names |= {v.name for n in graph.nodes for v in n.outs}
        self.eager: dict[str, tuple[int, ...]] = {}  # strides by name, once they are asked for
        self.node: Node | None = None  # at hand; its origins go to all that is made for it

    def tensor(self, arg: Arg) -> Alias:
        """The tensor that this operand is."""
        assert isinstance(arg, Value)
        return self.tensors[arg.name]

    def pure(self, args: tuple[Arg, ...]) -> tuple[Arg, ...]:
        """Arguments with the present values of their tensors."""
        return tuple(map_values(a, lambda v: self.read(self.tensors[v.name])) for a in args)

    def pure_attrs(self, attrs: Attrs) -> Attrs:
        """The same for keyword arguments."""
        return tuple(zip((k for k, _ in attrs), self.pure(tuple(v for _, v in attrs))))

    def own(self, v: Value, value: Value | None = None, argument: Value | None = None) -> None:
        """`v` is a tensor with memory of its own."""
        value = value or v
        self.tensors[v.name] = Alias(v.name, Base(value, argument), value)

    def read(self, a: Alias) -> Value:
        """The present value of a tensor."""
        if a.parent is None or a.view is None:
            return a.base.value
        if a.version != a.base.version:
            out = self.fresh(f"{a.name}_v{a.base.version}", a.view.type)
            args = (self.read(a.parent), *a.view.args)
            self.emit(a.view.op, args, a.view.attrs, (out,), "view of a changed tensor")
            a.value, a.version = out, a.base.version
        return a.value

    def write(self, a: Alias, new: Value) -> None:
        """Give a tensor a new value, and with it its base."""
        if a.parent is None:
            _refuse_overlap(a)
            a.base.value, a.base.version = new, a.base.version + 1
        else:
            self.write(a.parent, self.put(a, a.parent, new))
        a.value, a.version = new, a.base.version

    def put(self, a: Alias, parent: Alias, new: Value) -> Value:
        """The new value of the parent of view `a`, which has the new value `new`."""
        assert a.view is not None
        whole = parent.value.type.pure()
        out = self.fresh(f"{parent.name}_v{a.base.version + 1}", whole)
        call = inverse(a.view, whole)
        if call is not None:
            return self.emit(call[0], (new, *call[1]), (), (out,), "write through a view")
        op = scatter(a.view)
        if op is None:
            raise CompileError("MC012", f"the model writes through a view made by {a.view.op}")
        args = (self.read(parent), new, *a.view.args)
        return self.emit(op, args, a.view.attrs, (out,), "write through a view")

    def memory(self, a: Alias, args: tuple[Arg, ...]) -> tuple[Alias, tuple[Arg, ...]]:
        """as_strided addresses memory: (a tensor that shows the base's memory in order, arguments)."""
        root, strides = a.root, self.strides(a.root)
        offset = args[2] if len(args) > 2 else None
        if offset is None:
            offset = self.region(a)[2]
        order = layouts.dense_order(root.value.type.dims, strides)
        if order != tuple(range(len(order))):
            shape = tuple(root.value.type.shape[i] for i in order)
            view = View("aten.permute", (order,), (), root.value.type.pure().with_shape(shape))
            out = self.fresh(f"{root.name}_memory", view.type)
            self.emit(view.op, (self.read(root), order), (), (out,), "order of memory")
            root = Alias(out.name, root.base, out, root, view, root.base.version)
        return root, (*args[:2], offset)

    def region(self, a: Alias) -> layouts.Region:
        """Where in eager's memory a tensor lies."""
        return layouts.region(a.root.value, self.strides(a.root), a.chain)

    def strides(self, root: Alias) -> tuple[int, ...]:
        """Eager's strides of a base."""
        if root.base.argument is not None:
            return root.base.argument.type.dense_strides
        if not self.eager:
            self.eager = layouts.eager_strides(self.graph)
        return self.eager[root.name]

    # -------------------------------------------------------------------- making nodes

    def emit(
        self,
        op: str,
        args: tuple[Arg, ...],
        attrs: Attrs,
        outs: tuple[Value, ...],
        why: str = "",
    ) -> Value:
        """Append a node, with the origins of the captured node at hand; gives its first result."""
        origins = self.node.origins if self.node else ()
        self.nodes.append(Node(op, args, attrs, outs, origins, why))
        return outs[0]

    def fresh(self, name: str, type: TensorType) -> Value:
        """A new value of this name, or one like it."""
        base, n = name, 2
        while name in self.names:
            name, n = f"{base}_{n}", n + 1
        self.names.add(name)
        return Value(name, type)


def _refuse_overlap(a: Alias) -> None:
    """A write to one element of an expanded argument changes others: no value shows that."""
    type = a.value.type if a.base.argument is None else a.base.argument.type
    if any(step == 0 and n > 1 for n, step in zip(type.dims, type.strides or ())):
        raise CompileError(
            "MC012",
            f"the model writes to {a.name}, whose elements share memory (an expanded tensor)",
            remedy="Pass a copy (.clone() or .contiguous()), or let eager PyTorch run the call.",
        )
