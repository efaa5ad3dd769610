"""Functionalize: no mutation, no shared memory; what was written to arguments is listed at the end.

    t0 = aten.slice.Tensor(x, 0, 1)            t0 = aten.slice.Tensor(x, 0, 1)
    t1 = aten.add_.Tensor(t0, 1)         ->    t1 = aten.add.Tensor(t0, 1)
    t2 = aten.mul.Tensor(x, 2)                 x_v1 = aten.slice_scatter(x, t1, 0, 1)
                                               t2 = aten.mul.Tensor(x_v1, 2)
                                               x[...] = x_v1

Every tensor is a *base* or a view of one, through a chain of views.  A base holds one value at a time; a
write computes the new value purely and puts it back along the chain (`views`); a view read after its base
changed is taken again.  In PyTorch this is `torch.func.functionalize`, in C++.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from minicompile.capture import layouts
from minicompile.capture.aliasing import Alias, Memory
from minicompile.capture.inplace import PureCall, pure_call, wide_dtypes
from minicompile.capture.provenance import source_line
from minicompile.capture.views import SAME, View, pieces
from minicompile.errors import CompileError
from minicompile.ir.graph import Arg, Graph, Node, Output, Value
from minicompile.ir.torch_call import is_random, torch_op


@dataclass(frozen=True)
class Functionalize:
    """The pass: an ATen graph as captured -> the same function as pure SSA.

    Ensures: no op writes to an operand; `writes` holds the mutations of arguments, done after everything
    else; outputs that are arguments or views of them are marked `view` (taken after the writes); all
    other outputs are fresh, so two outputs that shared memory in eager are equal but no longer share it.
    Raises CompileError MC012 for changes of a tensor's shape or memory (t_, resize_, set_).
    """

    name: str = "functionalize"

    def run(self, graph: Graph) -> Graph:
        """The pure graph. Nodes made here say `why`; all keep the names and origins of the captured."""
        return _Functionalizer(graph).run()


class _Functionalizer(Memory):
    """One run of the pass."""

    def run(self) -> Graph:
        """Rewrite node by node, then outputs and writes."""
        for v in self.graph.arguments:
            self.own(v, argument=v)
        for node in self.graph.nodes:
            self.node = node
            try:
                self.step(node)
            except CompileError as error:
                raise _located(error, node) from None
        outputs = tuple([self.output(o) for o in self.graph.outputs])
        bases = [(v.name, self.tensors[v.name].base) for v in self.graph.arguments]
        writes = tuple((name, base.value) for name, base in bases if base.version)
        return replace(self.graph, nodes=tuple(self.nodes), outputs=outputs, writes=writes)

    # -------------------------------------------------------------------- one captured node

    def step(self, node: Node) -> None:
        """Emit the pure form of one node."""
        pure = pure_call(node)
        if self.changes_nothing(node):
            self.tensors[node.out.name] = self.tensor(node.args[0])
        elif pure is not None:
            self.mutate(pure)
        elif node.op == "aten.lift_fresh":
            # New data from torch.tensor(...): its memory is not that of the constant itself.
            self.own(node.out, self.read(self.tensor(node.args[0])))
        elif _is_view(node):
            self.take_view(node)
        else:
            args = self.pure(node.args)
            if node.op == "aten.as_strided_copy":
                parent, rest = self.memory(self.tensor(node.args[0]), node.args[1:])
                args = (self.read(parent), *rest)
            self.emit(node.op, args, self.pure_attrs(node.attrs), node.outs)
            for v in node.outs:
                self.own(v)

    def changes_nothing(self, node: Node) -> bool:
        """Is the result the operand as it was? Also of ``x.copy_(x)``, even where x may not be written to."""
        if node.op == "aten.copy_":
            return self.tensor(node.args[0]) is self.tensor(node.args[1])
        return node.op in SAME

    def take_view(self, node: Node) -> None:
        """A view is a value like any other, but it remembers where it is from."""
        parent, rest = self.tensor(node.args[0]), node.args[1:]
        if node.op == "aten.as_strided":
            parent, rest = self.memory(parent, rest)
        self.emit(node.op, (self.read(parent), *rest), node.attrs, node.outs)
        views = [View(node.op, rest, node.attrs, v.type) for v in node.outs]
        if torch_op(node.op)._schema.returns[0].type.kind() == "ListType":
            views = pieces(node.op, rest, tuple(v.type for v in node.outs))
        for v, view in zip(node.outs, views):
            self.tensors[v.name] = Alias(v.name, parent.base, v, parent, view, parent.base.version)

    def mutate(self, pure: PureCall) -> None:
        """Emit the pure form of a writing op, and write its results through the tensors written to."""
        targets = [self.tensor(t) for t in pure.targets]
        for target, v in zip(targets, pure.results):
            if pure.reshapes or target.value.type.shape != v.type.shape:
                self.need_unshared(target)
        pure = replace(pure, args=self.operands(pure), attrs=self.pure_attrs(pure.attrs))
        for v in pure.extra:
            self.own(v)
        results = self.draw(pure, targets[0]) if is_random(pure.op) else self.compute(pure)
        for target, v in zip(targets, results):
            self.write(target, v)
            self.tensors[v.name] = target

    def operands(self, pure: PureCall) -> tuple[Arg, ...]:
        """The positional arguments of a pure form."""
        if pure.op == "aten.as_strided":
            parent, rest = self.memory(self.tensor(pure.args[0]), pure.args[1:])
            return (self.read(parent), *rest)
        return self.pure(pure.args)

    def compute(self, pure: PureCall) -> list[Value]:
        """Emit the pure form; its results are rounded to the dtypes of the tensors written to."""
        known = self.node.outs if self.node else ()
        results = [v if v in known else self.fresh(v.name, v.type) for v in pure.results]
        raw = list(results)
        for i, dtype in enumerate(wide_dtypes(pure, [v.type for v in results])):
            if dtype is not None:
                raw[i] = self.fresh(f"{results[i].name}_wide", results[i].type.with_dtype(dtype))
        self.emit(pure.op, pure.args, pure.attrs, (*pure.extra, *raw))
        for before, after in zip(raw, results):
            if before is not after:
                dtypes = (("dtype", after.type.dtype),)
                self.emit("aten._to_copy", (before,), dtypes, (after,), "in-place result")
        return results

    def draw(self, pure: PureCall, target: Alias) -> list[Value]:
        """Random numbers fill memory in its own order, so that seeds mean what they mean in eager."""
        order = layouts.axis_order(self.region(target)[1])
        if order == tuple(range(len(order))):
            return self.compute(pure)
        (result,) = pure.results
        type = result.type.with_shape(tuple(result.type.shape[i] for i in order))
        seen = self.fresh(f"{target.name}_memory", type)
        self.emit("aten.permute", (pure.args[0], order), (), (seen,), "order of memory")
        drawn = self.fresh(f"{result.name}_drawn", type)
        self.emit(pure.op, (seen, *pure.args[1:]), pure.attrs, (drawn,))
        back = tuple(order.index(i) for i in range(len(order)))
        self.emit("aten.permute", (drawn, back), (), (result,), "order of memory")
        return [result]

    def need_unshared(self, target: Alias) -> None:
        """A tensor may take another shape in place only if nobody else sees its memory."""
        others = [a for a in self.tensors.values() if a.base is target.base and a is not target]
        if target.base.argument or target.parent or others:
            raise CompileError(
                "MC012",
                f"{self.node.op if self.node else ''} changes the shape of a tensor seen elsewhere",
                remedy="Use the form that returns a new tensor (x.t() for x.t_()).",
            )

    def output(self, o: Output) -> Output:
        """A view of an argument stays one; anything else is fresh memory."""
        a = self.tensors[o.value.name]
        base = a.base.argument
        if base is not None:
            if _reinterprets(a, base):
                raise CompileError(
                    "MC012",
                    f"the model returns a view of {base.name} that reads its memory in another way "
                    "(another dtype, or lazily conjugated or negated)",
                    remedy="Return a copy of it (.clone()).",
                )
            return Output(base, None, self.region(a))
        value = self.read(a)
        if any(value.name == v.name for v in self.graph.arguments):
            out = self.fresh(f"{o.value.name}_out", value.type.pure())
            value = self.emit("aten.clone", (value,), (), (out,), "a new tensor for every call")
        return Output(value, o.strides)


def _reinterprets(a: Alias, base: Value) -> bool:
    """Are the elements of this view other numbers than those of its base? No strides can say that."""
    lazy = any(v.op in ("aten._conj", "aten._neg_view") for v in a.chain)
    return lazy or a.value.type.dtype is not base.type.dtype


def _is_view(node: Node) -> bool:
    """Does the op return its operand's memory, by its schema?"""
    arguments = torch_op(node.op)._schema.arguments
    alias = arguments[0].alias_info if arguments else None
    return alias is not None and not alias.is_write and isinstance(node.args[0], Value)


def _located(error: CompileError, node: Node) -> CompileError:
    """The error with the user's line, if it has none yet."""
    if error.where or not node.origins:
        return error
    loc = node.origins[0].loc
    return CompileError(
        error.code,
        error.message,
        where=f"{loc} in {loc.function}()",
        context=source_line(loc),
        remedy=error.remedy or "Without fullgraph=True the call is left to eager PyTorch.",
    )
