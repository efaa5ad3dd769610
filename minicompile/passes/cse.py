"""cse: common subexpressions are computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from minicompile.ir.graph import Arg, Graph, Node, Value, map_node, substitute
from minicompile.ir.location import unite
from minicompile.passes.base import Pass, register
from minicompile.passes.changes import current
from minicompile.passes.effects import pure

Key = tuple[object, ...]


@register
@dataclass(frozen=True)
class Cse(Pass):
    """Nodes with equal op, arguments and attributes become one, with the origins of all of them.

    Random and mutating Externs stay: two calls of `rand` are two different numbers.

    before:  t0: f32[4] = exp(x)      # m.py:1
             t1: f32[4] = exp(x)      # m.py:2
             t2: f32[4] = add(t0, t1) # m.py:3
    after:   t0: f32[4] = exp(x)      # m.py:1, m.py:2
             t2: f32[4] = add(t0, t0) # m.py:3
    """

    name = "cse"
    verb = "merged"
    requires = ("ungrouped",)

    def run(self, graph: Graph) -> Graph:
        changes = current()
        first: dict[Key, str] = {}  # what is computed -> name of the first node that does
        kept: dict[str, Node] = {}
        env: dict[str, Value] = {}
        for n, node in enumerate(graph.nodes):
            changes.focus = node
            node = map_node(node, lambda v: env.get(v.name, v))
            name = node.outs[0].name if node.outs else f"effect {n}"
            twin = first.setdefault(key(node), name) if node.outs and pure(node.op) else name
            if twin == name or not changes.fire("cse", node):
                kept[name] = node
                continue
            other = kept[twin]
            kept[twin] = replace(other, origins=unite(other.origins, node.origins))
            env.update((v.name, w) for v, w in zip(node.outs, other.outs))
        return substitute(graph, env, kept.values()) if env else graph


def key(node: Node) -> Key:
    """Equal exactly for nodes that compute the same."""
    attrs = tuple((k, literal(v)) for k, v in node.attrs)
    return node.op, literal(node.args), attrs, tuple(v.type for v in node.outs)


def literal(a: Arg) -> object:
    """An argument in hashable form. Law: 1, 1.0 and True differ, 0.0 and -0.0 differ, nan is nan."""
    if isinstance(a, tuple):
        return tuple(map(literal, a))
    if isinstance(a, Value):
        return a.name
    return type(a), repr(a)
