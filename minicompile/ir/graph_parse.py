"""Text -> Graph: the inverse of ir.graph_text."""

from __future__ import annotations

import ast
import re

from minicompile.ir.graph import Arg, Graph, Group, Node, Output, TorchConst, Value, Verdict
from minicompile.ir.graph_text import output_type
from minicompile.ir.optable import OPS
from minicompile.ir.text_lines import parse_comment
from minicompile.ir.text_source import Source
from minicompile.ir.types import DTYPES, TensorType

_VERDICT = re.compile(r"(\S+) -> (\S+) (fused|kept apart): (.*)")
_FLOATS = {"inf": float("inf"), "nan": float("nan")}


def parse_graph(source: Source, function: ast.FunctionDef) -> Graph:
    """The graph that `function` writes down. CompileError MC020 at the first thing that is wrong."""
    parser = GraphParser(source)
    inputs, params = parser.signature(function)
    for statement in function.body:
        parser.statement(statement)
    parser.check_returns(function)
    return Graph(
        function.name,
        inputs,
        params,
        tuple(parser.nodes),
        tuple(parser.outputs),
        tuple(parser.writes),
        tuple(Group(name, tuple(members)) for name, members in parser.groups.items()),
        parse_verdicts(source),
    )


def parse_verdicts(source: Source) -> tuple[Verdict, ...]:
    found = (_VERDICT.fullmatch(note) for note in source.notes.values())
    return tuple(Verdict(m[1], m[2], m[3] == "fused", m[4]) for m in found if m)


class GraphParser:
    """Reads the lines of a graph, and collects what they define."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.env: dict[str, Value] = {}
        self.nodes: list[Node] = []
        self.outputs: list[Output] = []
        self.writes: list[tuple[str, Value]] = []
        self.groups: dict[str, list[str]] = {}
        self._declared: dict[str, TensorType] = {}  # results of the next call

    def signature(self, function: ast.FunctionDef) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """(inputs, params): the arguments before and after the ``*``."""
        inputs = tuple(self._argument(a) for a in function.args.args)
        return inputs, tuple(self._argument(a) for a in function.args.kwonlyargs)

    def _argument(self, arg: ast.arg) -> Value:
        if arg.annotation is None:
            self.source.fail(arg, f"{arg.arg} has no type", f"Write {arg.arg}: f32[...].")
        return self.define(Value(arg.arg, self.source.type(arg.annotation)))

    def define(self, value: Value) -> Value:
        self.env[value.name] = value
        return value

    # ------------------------------------------------------------------------------ statements

    def statement(self, s: ast.stmt, group: str = "") -> None:
        match s:
            case ast.With(items=[ast.withitem(context_expr=name)]):
                for inner in s.body:
                    self.statement(inner, self.source.name(name))
            case ast.AnnAssign(target=ast.Name(id=name), value=None):
                self._declared[name] = self.source.type(s.annotation)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as call):
                self._declared[name] = self.source.type(s.annotation)
                self._node(s, call, [name], group)
            case ast.Assign(targets=[ast.Subscript(value=name_node)], value=value):
                written = self._value(name_node)
                self.writes.append((written.name, self._value(value)))
            case ast.Assign(targets=[target], value=call):
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                self._node(s, call, [self.source.name(n) for n in names], group)
            case ast.Expr(value=ast.Call() as call):
                self._node(s, call, [], group)
            case ast.Return(value=value):
                items = value.elts if isinstance(value, ast.Tuple) else [value] if value else []
                self.outputs = [self._output(e) for e in items]
            case ast.Pass():
                pass
            case _:
                self.source.fail(s, "this statement is not part of a graph")

    def _node(self, s: ast.stmt, call: ast.expr, names: list[str], group: str) -> None:
        node = self.node(s, call, names)
        self.nodes.append(node)
        if group:
            self.groups.setdefault(group, []).extend(names)

    def node(self, s: ast.stmt, call: ast.expr, names: list[str]) -> Node:
        """One line ``names = call``; defines the names."""
        if not isinstance(call, ast.Call):
            self.source.fail(call, "the call of an op is expected here")
        op = self._op(call.func)
        args = tuple(self.arg(a) for a in call.args)
        attrs = [item for k in call.keywords for item in self._keyword(k)]
        for name in names:
            if name not in self._declared:
                self.source.fail(s, f"{name} has no type", f"Write {name}: f32[...].")
        outs = tuple(self.define(Value(name, self._declared.pop(name))) for name in names)
        comment = self.source.comments.get(s.end_lineno or s.lineno, "")
        origins, why = parse_comment(comment, names[0] if names else "")
        return Node(op, args, tuple(attrs), outs, origins, why)

    def _op(self, func: ast.expr) -> str:
        match func:
            case ast.Call(func=ast.Name(id="op"), args=[ast.Constant(value=str(op))]):
                return op
            case ast.Name(id=op) if op not in OPS:
                self.source.fail(
                    func, f"unknown op {op}", "`minicompile ops` lists the primitives."
                )
        op = self.source.segment(func)
        if "." in op and op.split(".")[0] not in ("aten", "torch_ops"):
            self.source.fail(
                func, f"unknown op {op}", "Ops of PyTorch start with aten or torch_ops."
            )
        return op

    def _keyword(self, keyword: ast.keyword) -> list[tuple[str, Arg]]:
        if keyword.arg is not None:
            return [(keyword.arg, self.arg(keyword.value))]
        if not isinstance(keyword.value, ast.Dict):
            self.source.fail(keyword.value, "an attribute is written name=value")
        pairs = zip(keyword.value.keys, keyword.value.values)
        return [(ast.literal_eval(k), self.arg(v)) for k, v in pairs if k is not None]

    # ------------------------------------------------------------------------------ arguments

    def arg(self, e: ast.expr) -> Arg:
        match e:
            case ast.Tuple(elts=items):
                return tuple(self.arg(i) for i in items)
            case ast.Constant(value=bool() | int() | float() | str() | None as literal):
                return literal
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.arg(operand)
                if isinstance(number, (int, float)) and not isinstance(number, bool):
                    return -number
            case ast.Name(id=name) if name in self.env:
                return self.env[name]
            case ast.Name(id=name) if name in _FLOATS:
                return _FLOATS[name]
            case ast.Name(id=name) if name in DTYPES:
                return DTYPES[name]
            case ast.Name(id=name):
                self.source.fail(e, f"{name} is not defined here")
            case ast.Call(func=ast.Name(id="complex"), args=[real, imag]):
                return complex(self._float(real), self._float(imag))
        text = self.source.segment(e)
        if not text.startswith("torch."):
            self.source.fail(e, "a value or a literal is expected here")
        return TorchConst(text)

    def _float(self, e: ast.expr) -> float:
        number = self.arg(e)
        if not isinstance(number, float):
            self.source.fail(e, "a float is expected here")
        return number

    def _value(self, e: ast.expr) -> Value:
        name = self.source.name(e)
        if name not in self.env:
            self.source.fail(e, f"{name} is not defined here")
        return self.env[name]

    # ------------------------------------------------------------------------------ outputs

    def _output(self, e: ast.expr) -> Output:
        if isinstance(e, ast.Name):
            return Output(self._value(e))
        what, args, _ = self.source.call(e)
        if what == "strided" and len(args) == 2:
            return Output(self._value(args[0]), strides=self.source.integers(args[1]))
        if what == "view" and len(args) == 4:
            shape, strides = self.source.integers(args[1]), self.source.integers(args[2])
            return Output(self._value(args[0]), view=(shape, strides, self.source.integer(args[3])))
        self.source.fail(
            e, "an output is NAME, strided(NAME, strides) or view(NAME, shape, strides, offset)"
        )

    def check_returns(self, function: ast.FunctionDef) -> None:
        """The types after the arrow, if there are any, must be those of the outputs."""
        r = function.returns
        if r is None:
            return
        items = r.elts if isinstance(r, ast.Tuple) else [r]
        if len(items) != len(self.outputs):
            self.source.fail(r, f"{len(items)} types are announced, {len(self.outputs)} returned")
        for item, out in zip(items, self.outputs):
            if self.source.type(item) != output_type(out):
                self.source.fail(item, f"{out.value.name} is {output_type(out)}")
