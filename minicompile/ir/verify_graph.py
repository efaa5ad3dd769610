"""The rules of a well-formed graph.

G1  every name is a Python name, no reserved word (a dtype, inf, ...), and is defined once
G2  every value is defined before it is used, and used with the type that it was defined with
G3  an op is a primitive or an op that PyTorch has; the type of a primitive's result is the one
    that its type rule gives
G4  only inputs and parameters have strides
G5  an output's strides fit its rank; a view is one of an input or parameter
G6  a write-back goes to an input or parameter, from a value of the same type
G7  after fuse, groups partition the primitives: each in exactly one group, an Extern in none, and no
    group needs a result that needs the group itself
G8  every node has an origin in the user's code, or says why the compiler made it
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from minicompile.errors import CompileError
from minicompile.ir.graph import Arg, Graph, Node, TorchConst, Value, map_values
from minicompile.ir.graph_text import node_text, output_text
from minicompile.ir.optable import OPS
from minicompile.ir.problems import Problem, bad_name
from minicompile.ir.torch_call import torch_op
from minicompile.ir.types import DType


def graph_problems(graph: Graph) -> list[Problem]:
    """Everything that is wrong with the graph, in the order of its text."""
    check = _Check(graph)
    for value in graph.arguments:
        check.define(value, str(value.name))
    for node in graph.nodes:
        check.node(node)
    check.ends()
    if graph.groups:
        check.groups()
    return check.problems


_ARGUMENTS = (Value, bool, int, float, complex, str, DType, TorchConst)


@dataclass
class _Check:
    graph: Graph
    problems: list[Problem] = field(default_factory=list)
    env: dict[str, Value] = field(default_factory=dict)

    def add(self, rule: str, message: str, text: str = "", node: Node | None = None) -> None:
        where = str(node.origins[0].loc) if node is not None and node.origins else ""
        self.problems.append(Problem(rule, message, text, where))

    def define(self, value: Value, text: str, node: Node | None = None) -> None:
        if bad := bad_name(value.name):
            self.add("G1", bad, text, node)
        if value.name in self.env:
            self.add("G1", f"{value.name} is defined twice", text, node)
        self.env[value.name] = value

    def use(self, value: Value, text: str, node: Node | None = None) -> None:
        known = self.env.get(value.name)
        if known is None:
            self.add("G2", f"{value.name} is not defined before", text, node)
        elif known.type.pure() != value.type.pure():
            message = f"{value.name} is {known.type}, but used as {value.type}"
            self.add("G2", message, text, node)

    def node(self, node: Node) -> None:
        text = node_text(node)
        for value in dict.fromkeys(node.operands):
            self.use(value, text, node)
        if message := type_problem(node):
            self.add("G3", message, text, node)
        for out in node.outs:
            if out.type.strides is not None:
                self.add("G4", f"{out.name} has strides, but is computed here", text, node)
            self.define(out, text, node)
        if not node.origins and not node.why:
            self.add("G8", "no origin, and no reason either", text)

    def ends(self) -> None:
        """Outputs and write-backs."""
        arguments = {v.name for v in self.graph.arguments}
        for out in self.graph.outputs:
            text = f"return {output_text(out)}"
            self.use(out.value, text)
            if out.strides is not None and len(out.strides) != out.value.type.ndim:
                self.add("G5", f"{len(out.strides)} strides for {out.value.type}", text)
            if out.view is not None and out.value.name not in arguments:
                self.add("G5", f"{out.value.name} is not an input", text)
            if out.view is not None and len(out.view[0]) != len(out.view[1]):
                self.add("G5", "shape and strides differ in length", text)
        for name, value in self.graph.writes:
            text = f"{name}[...] = {value.name}"
            self.use(value, text)
            if name not in arguments:
                self.add("G6", f"{name} is not an input", text)
            elif self.env[name].type.pure() != value.type.pure():
                self.add("G6", f"{name} is {self.env[name].type}, {value.name} {value.type}", text)

    # ------------------------------------------------------------------------------ groups

    def groups(self) -> None:
        owner: dict[str, str] = {}
        known = {v.name for n in self.graph.nodes for v in n.outs}
        for group in self.graph.groups:
            for name in group.nodes:
                if name not in known:
                    self.add("G7", f"there is no node {name}", f"with {group.name}:")
                if name in owner:
                    message = f"{name} is also in {owner[name]}"
                    self.add("G7", message, f"with {group.name}:")
                owner[name] = group.name
        for node in self.graph.nodes:
            grouped = any(v.name in owner for v in node.outs)
            if grouped == node.is_extern:
                message = "an Extern is in no group" if grouped else "in no group"
                self.add("G7", message, node_text(node), node)
        self.cycles(owner)

    def cycles(self, owner: dict[str, str]) -> None:
        """A group is run at once, so no path may leave it and come back.

        `behind[v]` are the groups whose results v needs, other than its own as long as the path stays there.
        """
        behind: dict[str, set[str]] = {}
        for node in self.graph.nodes:
            here = owner.get(node.outs[0].name, node.outs[0].name) if node.outs else ""
            needs: set[str] = set()
            for v in node.operands:
                there = owner.get(v.name, v.name)
                needs |= behind.get(v.name, set()) | ({there} if there != here else set())
            if here in needs:
                message = f"{here} needs a result that needs {here} itself"
                self.add("G7", message, node_text(node), node)
            for v in node.outs:
                behind[v.name] = needs - {here}


def type_problem(node: Node) -> str:
    """What is wrong with the op, the arguments or the types of a node, or ""."""
    for arg in (*node.args, *(value for _, value in node.attrs)):
        if (strange := _strange(arg)) is not None:
            return f"{strange!r} cannot stand among the arguments"
    if node.is_extern:
        try:
            torch_op(node.op)
        except CompileError as e:
            return e.message
        return ""
    if node.op not in OPS:
        return f"{node.op} is no primitive"
    try:
        inferred = OPS[node.op].infer(*_types(node.args), **dict(node.attrs)).pure()
    except ValueError:  # a symbolic dimension: not settled before it gets a size
        return ""
    except (TypeError, KeyError, IndexError) as e:
        return f"{node.op}: {e}"
    if [v.type.pure() for v in node.outs] != [inferred]:
        return f"{node.op} gives {inferred}"
    return ""


def _strange(arg: object) -> object | None:
    """A part of the argument that the text cannot hold, if there is one."""
    if isinstance(arg, tuple):
        return next((s for a in arg if (s := _strange(a)) is not None), None)
    return None if arg is None or type(arg) in _ARGUMENTS else arg


def _types(args: Iterable[Arg]) -> list[Arg]:
    return [map_values(a, lambda v: v.type) for a in args]  # type: ignore[arg-type, return-value]
