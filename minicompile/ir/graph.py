"""Graph IR: a pure function in SSA form over whole tensors.

    graph   := def NAME(param, ..., *, param, ...) -> (type, ...): line* return out, ...
    param   := NAME: type | NAME: type @ strides(INT, ...)      after the `*`: the model's parameters
    line    := NAME: type = call                                # m.py:4
             | NAME: type; NAME: type; NAME, NAME = call        several results
             | with KERNEL: line*                               after fuse: what shares a kernel
             | NAME[...] = NAME                                 write-back: the input NAME is mutated
    call    := OP(arg, ..., attr=literal, ...)
    OP      := NAME                                            a primitive of the registry
             | aten.NAME | aten.NAME.OVERLOAD | torch_ops.NAMESPACE.NAME.OVERLOAD
    arg     := NAME | literal | (arg, ...)
    literal := INT | FLOAT | inf | nan | True | False | None | STRING | dtype | torch.NAME | (literal, ...)
    out     := NAME | strided(NAME, (INT, ...)) | view(NAME, (shape), (strides), offset)

Two levels share this form.  At the *ATen level* every op is an ATen overload, exactly as PyTorch
was asked.  At the *primitive level* ops are primitives of the registry (`minicompile.ops`) and
elementwise operands have equal shape and dtype; an ATen op that is still there is an Extern: the
runtime calls PyTorch for it.

`strided(t, s)` returns t in memory with strides s, as eager does; `view(x, shape, strides, offset)`
returns that view of the *input* x, so aliasing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, Union

from minicompile.ir.location import Origin
from minicompile.ir.types import DType, TensorType

# ---------------------------------------------------------------------------------- data


@dataclass(frozen=True)
class Value:
    """A tensor, defined once (SSA). Two values are the same when their names are."""

    name: str
    type: TensorType

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class TorchConst:
    """A torch object among the arguments: ``torch.preserve_format``, ``torch.device('cpu')``."""

    text: str

    def __str__(self) -> str:
        return self.text


Arg: TypeAlias = Union[
    Value, bool, int, float, complex, str, DType, TorchConst, "tuple[Arg, ...]", None
]


@dataclass(frozen=True)
class Node:
    """One operation. `attrs` keep their order; `origins` say which user lines it comes from.

    `why` names a reason for nodes the compiler made by itself ("layout of output 0"), else "".
    """

    op: str
    args: tuple[Arg, ...]
    attrs: tuple[tuple[str, Arg], ...]
    outs: tuple[Value, ...]
    origins: tuple[Origin, ...] = ()
    why: str = ""

    @property
    def out(self) -> Value:
        """The only result. ValueError if there are several."""
        (value,) = self.outs
        return value

    @property
    def is_extern(self) -> bool:
        """An op of PyTorch rather than one of ours?"""
        return "." in self.op

    def attr(self, name: str, default: Arg = None) -> Arg:
        return dict(self.attrs).get(name, default)

    def ints(self, name: str) -> tuple[int, ...]:
        """An attribute that is a tuple of integers, or one integer. TypeError for anything else."""
        found = self.attr(name)
        numbers = found if isinstance(found, tuple) else (found,)
        if not all(isinstance(n, int) for n in numbers):
            raise TypeError(f"{self.op}: {name}={found!r} should be integers")
        return tuple(n for n in numbers if isinstance(n, int))

    @property
    def operands(self) -> tuple[Value, ...]:
        """Every value read, in order, nested tuples and attributes included, with repeats."""
        return tuple(values_in((self.args, tuple(v for _, v in self.attrs))))


@dataclass(frozen=True)
class Output:
    """What the caller gets: a value in memory with eager's strides, or a view of an input."""

    value: Value
    strides: tuple[int, ...] | None = None
    view: tuple[tuple[int, ...], tuple[int, ...], int] | None = None  # shape, strides, offset


@dataclass(frozen=True)
class Group:
    """Nodes that share a kernel, by the names of their results, in graph order."""

    name: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """Why the edge producer -> consumer was fused, or kept apart; `reason` is for people."""

    producer: str
    consumer: str
    fused: bool
    reason: str


@dataclass(frozen=True)
class Graph:
    """A pure function. `writes` are (input name, value): mutations of inputs, done at the end."""

    name: str
    inputs: tuple[Value, ...]
    params: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    writes: tuple[tuple[str, Value], ...] = ()
    groups: tuple[Group, ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    @property
    def arguments(self) -> tuple[Value, ...]:
        """Inputs, then parameters: everything that is not computed here."""
        return self.inputs + self.params

    @property
    def results(self) -> tuple[Value, ...]:
        """All values that must exist at the end: outputs (other than views of inputs) and writes."""
        out = [o.value for o in self.outputs if o.view is None]
        return tuple(dict.fromkeys(out + [v for _, v in self.writes]))

    def producers(self) -> dict[str, Node]:
        """Value name -> the node that defines it."""
        return {v.name: n for n in self.nodes for v in n.outs}

    def users(self) -> dict[str, list[Node]]:
        """Value name -> nodes that read it, in order, each once."""
        users: dict[str, list[Node]] = {v.name: [] for v in self.arguments}
        for node in self.nodes:
            for v in dict.fromkeys(node.operands):
                users.setdefault(v.name, []).append(node)
            for v in node.outs:
                users.setdefault(v.name, [])
        return users

    def with_nodes(self, nodes: Iterable[Node]) -> Graph:
        return replace(self, nodes=tuple(nodes))

    def group_of(self) -> dict[str, Group]:
        """Value name -> its kernel group (after fuse)."""
        return {name: g for g in self.groups for name in g.nodes}


# ---------------------------------------------------------------------------------- walking


def values_in(arg: Arg) -> Iterator[Value]:
    """The values inside an argument, in order."""
    if isinstance(arg, Value):
        yield arg
    elif isinstance(arg, tuple):
        for a in arg:
            yield from values_in(a)


def map_values(arg: Arg, f: Callable[[Value], Arg]) -> Arg:
    """The argument with every value replaced by f(value); unchanged parts are shared."""
    if isinstance(arg, Value):
        return f(arg)
    if isinstance(arg, tuple):
        new = tuple(map_values(a, f) for a in arg)
        return arg if all(a is b for a, b in zip(arg, new)) else new
    return arg


def map_node(node: Node, f: Callable[[Value], Arg]) -> Node:
    """The node with every operand replaced by f(operand)."""
    args = map_values(node.args, f)
    attrs = tuple((k, map_values(v, f)) for k, v in node.attrs)
    assert isinstance(args, tuple)
    return (
        node if args == node.args and attrs == node.attrs else replace(node, args=args, attrs=attrs)
    )


def substitute(graph: Graph, env: dict[str, Value], nodes: Iterable[Node]) -> Graph:
    """`graph` with these nodes, and with each value named in `env` replaced everywhere.

    Chains are followed: with a -> b and b -> c, a becomes c. Strided and view outputs keep their form.
    """

    def get(v: Value) -> Value:
        while v.name in env and env[v.name].name != v.name:
            v = env[v.name]
        return v

    return replace(
        graph,
        nodes=tuple(map_node(n, get) for n in nodes),
        outputs=tuple(replace(o, value=get(o.value)) for o in graph.outputs),
        writes=tuple((name, get(v)) for name, v in graph.writes),
    )
