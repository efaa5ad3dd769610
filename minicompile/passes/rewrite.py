"""Local rewrite rules: tables of named laws, and the driver that applies them to a fixpoint.

A law without conditions is its own rule; names stand for any value, numbers for literals:

    law("neg_neg", "neg(neg(x)) -> x")

A rule that looks at attributes is a function under the law it stands for; inside it, primitives of the
registry emit nodes, and None means that the rule does not apply:

    @rule("reshape(reshape(x)) -> reshape(x)", "reshape")
    def reshape_reshape(node: Node, defs: Defs) -> Result: ...

Rules only look at producers, which are simplified already, so one forward sweep reaches the fixpoint.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from minicompile.ir.graph import Arg, Graph, Node, Value, map_node, substitute
from minicompile.ir.location import unite
from minicompile.ops.build import Builder, Handle, emit, unwrap, wrap
from minicompile.passes.changes import current
from minicompile.passes.cse import literal

Result: TypeAlias = Handle | Value | None
MAX_PER_NODE = 100  # more rewrites of one node than this: two rules undo each other


class Defs:
    """The producers of values so far; remembers which ones a rule looked at."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.seen: list[Node] = []

    def of(self, a: Arg, op: str = "") -> Node | None:
        """The node that computes `a`, if it is a value computed by `op` (or by anything)."""
        node = self.nodes.get(a.name) if isinstance(a, Value) else None
        if node is None or (op and node.op != op):
            return None
        self.seen.append(node)
        return node


@dataclass(frozen=True)
class Rule:
    """`apply` is tried on nodes whose op is in `ops` (all nodes if empty)."""

    name: str
    law: str
    ops: tuple[str, ...]
    apply: Callable[[Node, Defs], Result]


def rule(law: str, *ops: str) -> Callable[[Callable[[Node, Defs], Result]], Rule]:
    """The decorated function as a Rule named after it."""
    return lambda f: Rule(f.__name__, law, ops, f)


def law(name: str, text: str) -> Rule:
    """A rule from its law: ``sub(x, 0) -> x``. Ops in it must have no attributes."""
    left, right = (ast.parse(side.strip(), mode="eval").body for side in text.split("->"))
    assert isinstance(left, ast.Call) and isinstance(left.func, ast.Name)

    def apply(node: Node, defs: Defs) -> Result:
        env: dict[str, Arg] = {}
        if not _match_call(left, node, defs, env):
            return None
        built: Result = _build(right, env)
        return built

    return Rule(name, text, (left.func.id,), apply)


# ---------------------------------------------------------------------------------- patterns


def _match(pattern: ast.expr, a: Arg, defs: Defs, env: dict[str, Arg]) -> bool:
    if isinstance(pattern, ast.Name):  # a repeated name must stand for the same thing
        return literal(env.setdefault(pattern.id, a)) == literal(a)
    if isinstance(pattern, ast.Call):
        node = defs.of(a)
        return node is not None and _match_call(pattern, node, defs, env)
    return same_number(a, ast.literal_eval(pattern))


def _match_call(pattern: ast.Call, node: Node, defs: Defs, env: dict[str, Arg]) -> bool:
    assert isinstance(pattern.func, ast.Name)
    return (
        node.op == pattern.func.id
        and not node.attrs
        and len(node.args) == len(pattern.args)
        and all(_match(p, a, defs, env) for p, a in zip(pattern.args, node.args))
    )


def _build(pattern: ast.expr, env: dict[str, Arg]) -> Any:
    if isinstance(pattern, ast.Name):
        return wrap(env[pattern.id])
    if isinstance(pattern, ast.Call):
        assert isinstance(pattern.func, ast.Name)
        return emit(pattern.func.id, *(_build(a, env) for a in pattern.args))
    return ast.literal_eval(pattern)


def same_number(a: Arg, number: bool | int | float) -> bool:
    """Is `a` this literal? 1 is 1.0; True only is True; 0.0 is not -0.0."""
    if isinstance(a, bool) or isinstance(number, bool):
        return a is number
    if not isinstance(a, (int, float)) or a != number:
        return False
    return math.copysign(1.0, a) == math.copysign(1.0, number)


# ---------------------------------------------------------------------------------- driver


def apply_rules(graph: Graph, rules: Iterable[Rule]) -> Graph:
    """The graph with every rule applied until none fires; the graph itself if none ever does."""
    sweep = Sweep(graph, tuple(rules))
    for node in graph.nodes:
        sweep.add(node)
    if not sweep.fired:
        return graph
    return substitute(graph, sweep.env, dict.fromkeys(sweep.order()))


class Sweep:
    """One pass over the nodes, in order; `env` maps names of values that are gone to what they are."""

    def __init__(self, graph: Graph, rules: tuple[Rule, ...]) -> None:
        self.changes = current()
        self.rules = rules
        self.defs = Defs()
        self.env: dict[str, Value] = {}
        self.kept: list[Node | str] = []  # effects as they are, other nodes by the name of a result
        self.fired = False
        self.taken = {v.name for v in graph.arguments}
        self.taken |= {v.name for n in graph.nodes for v in n.outs}

    def order(self) -> list[Node]:
        return [n if isinstance(n, Node) else self.defs.nodes[n] for n in self.kept]

    def add(self, node: Node) -> None:
        """Rewrite `node` as long as a rule fires, then keep it."""
        for _ in range(MAX_PER_NODE):
            node = map_node(node, lambda v: self.env.get(v.name, v))
            self.changes.focus = node
            last = self.rewrite(node) if len(node.outs) == 1 else node
            if last is None:
                return
            if last is node:
                break
            node = last
        else:
            raise RuntimeError(f"rules undo each other on {node.op}")
        self.kept.append(node.outs[0].name if node.outs else node)
        self.defs.nodes.update((v.name, node) for v in node.outs)

    def rewrite(self, node: Node) -> Node | None:
        """What `node` becomes by one rule; `node` itself if none applies; None if it is another value."""
        for r in self.rules:
            if r.ops and node.op not in r.ops:
                continue
            self.defs.seen.clear()
            with Builder(node.out.name, self.taken.__contains__) as builder:
                result = unwrap(r.apply(node, self.defs))
            if result is not None and self.changes.fire(r.name, node):
                return self.replace(r, node, builder.nodes, result)
        return node

    def replace(self, r: Rule, node: Node, parts: list[Node], result: Value) -> Node | None:
        if result.type.pure() != node.out.type.pure():
            raise TypeError(f"rule {r.name} ({r.law}) turns {node.out.type} into {result.type}")
        self.fired = True
        origins = unite(node.origins, *(n.origins for n in self.defs.seen))
        made = {p.out.name for p in parts}
        self.taken |= made
        for p in parts:
            if p.out.name == result.name:
                return replace(p, outs=node.outs, origins=origins, why=node.why)
            self.add(replace(p, origins=origins, why=node.why))
        self.env[node.out.name] = result = self.env.get(result.name, result)
        self.unite_into(result, node)
        return None

    def unite_into(self, value: Value, gone: Node) -> None:
        """Whoever computes `value` now also stands for the node that is gone."""
        old = self.defs.nodes.get(value.name)
        if old is not None:
            new = replace(old, origins=unite(old.origins, gone.origins))
            self.defs.nodes.update((v.name, new) for v in old.outs)
