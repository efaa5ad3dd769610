"""Graph text: what is printed parses back to the same graph, and errors point at the place."""

from __future__ import annotations

import math

import pytest

import minicompile.ops  # noqa: F401  (fills the op table)
from minicompile.errors import CompileError
from minicompile.ir.graph import Graph, Group, Node, Output, TorchConst, Value, Verdict
from minicompile.ir.location import Loc, Origin
from minicompile.ir.text import parse, plain, text
from minicompile.ir.types import TensorType, bool_, f32, i64

TEXTS = {
    "one output": """\
def f(x: f32[4]) -> f32[4]:
    t0: f32[4] = add(x, 1.0)  # m.py:4
    return t0
""",
    "comments in one column, several places, a reason": """\
def f(x: f32[4]) -> f32[4]:
    t0: f32[4] = add(x, 1.0)  # a.py:9, m.py:4
    t1: f32[4] = exp(t0)      # m.py:5; layout of output 0
    t2: f32[4] = neg(t1)      # made up
    return t2
""",
    "parameters, strides, symbols, no outputs": """\
def f(ids: i64[B, T], x: f32[2, 3] @ strides(1, 2), *, w: f32[0], s: f32 @ strides()) -> ():
    return ()
""",
    "only parameters": """\
def f(*, w: f32[2]) -> f32[2]:
    return w
""",
    "several results, no result": """\
def f(x: f32[4]) -> (f32, i64):
    t0: f32; t1: i64; t0, t1 = aten.max.dim(x, 0)  # m.py:4
    aten._assert_async(t1)                         # m.py:5
    return t0, t1
""",
    "literals": """\
def f(x: f32[4]) -> f32[4]:
    t0: f32[4] = aten.a.b(x, 1, -1, 1e-05, -0.0, inf, -inf, nan, True, None, "a # 'b", (), (1,), (x, (2, x)))
    t1: f32[4] = aten.c(t0, complex(1.0, -inf), dtype=f32, out=bool, device=torch.device('cpu'), m=torch.strided)
    t2: f32[4] = op('aten.random.from')(t1, **{'from': 0})
    t3: f32[4] = torch_ops.mylib.foo.default(t2)
    return t3
""",
    "groups, verdicts and an extern between": """\
def f(x: f32[4]) -> f32[4]:
    with k0:
        t0: f32[4] = add(x, 1.0)
        # t0 -> t1 fused: same space (4,)
        t1: f32[4] = exp(t0)
    # t1 -> t2 kept apart: aten.sort is an Extern: PyTorch runs it
    t2: f32[4]; t3: i64[4]; t2, t3 = aten.sort(t1)
    with k1:
        # t2 -> t4 kept apart: x
        # t1 -> t4 kept apart: y
        t4: f32[4] = sub(t2, t1)
    return t4
""",
    "outputs and write-backs": """\
def f(x: f32[4], y: f32[2, 3]) -> (f32[2, 3], f32[2, 2], f32[4]):
    t0: f32[2, 3] = neg(y)
    x[...] = x
    y[...] = t0
    return strided(t0, (1, 2)), view(x, (2, 2), (1, 2), 0), x
""",
    "long signatures and returns are broken": """\
def f(
    first_input: f32[128, 128],
    *,
    layers_0_attention_weight: f32[128, 128],
    layers_0_attention_bias: f32[128],
) -> (f32[128, 128], f32[128, 128], f32[128, 128], f32[128, 128]):
    return (
        strided(first_input, (1, 128)),
        strided(layers_0_attention_weight, (1, 128)),
        strided(layers_0_attention_weight, (128, 1)),
        strided(first_input, (128, 1)),
    )
""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_round_trip(name: str) -> None:
    graph = parse(TEXTS[name])
    assert isinstance(graph, Graph)
    assert text(graph) == TEXTS[name]
    assert parse(text(graph)) == graph


def test_everything_survives_but_the_details_of_origins() -> None:
    x, out = Value("x", TensorType(f32, (2,), (3,))), Value("t2_0", TensorType(bool_, (2,)))
    origin = Origin(Loc("/home/me/m.py", 4, 8, 4, 20, "forward", "layers.0", "linear"), "t2")
    node = Node(
        "aten.foo", (x, (1, x)), (("a", TorchConst("torch.strided")),), (out,), (origin,), "y"
    )
    graph = Graph(
        "g", (x,), (), (node,), (Output(out, (5,)),), (("x", x),),
        (Group("k0", ("t2_0",)),), (Verdict("x", "t2_0", False, "no"),),
    )  # fmt: skip
    again = parse(text(graph))
    assert isinstance(again, Graph)
    assert plain(again) == plain(graph)
    assert again.nodes[0].origins == (Origin(Loc("m.py", 4), "t2"),)


def test_a_nan_is_the_nan_of_math_and_parses_back() -> None:
    graph = parse("def f(x: f32[4]) -> f32[4]:\n    t0: f32[4] = add(x, nan)\n    return t0\n")
    assert isinstance(graph, Graph)
    value = graph.nodes[0].args[1]
    assert isinstance(value, float) and math.isnan(value)


def test_paths_never_stand_in_the_text() -> None:
    origin = Origin(Loc("/home/me/m.py", 4), "t0")
    v = Value("t0", TensorType(i64))
    graph = Graph("g", (), (), (Node("full", (), (), (v,), (origin,)),), (Output(v),))
    assert "/home" not in text(graph)


HEAD = "def f(x: f32[4]) -> f32[4]:\n"

WRONG = {
    "undefined": (HEAD + "    t0: f32[4] = add(x, y)\n    return t0\n", 2, 25, "y is not defined"),
    "unknown op": (HEAD + "    t0: f32[4] = plus(x, x)\n    return t0\n", 2, 18, "unknown op plus"),
    "foreign op": (HEAD + "    t0: f32[4] = numpy.add(x)\n    return t0\n", 2, 18, "unknown op"),
    "no type": (HEAD + "    t0 = add(x, x)\n    return t0\n", 2, 5, "t0 has no type"),
    "bad dtype": ("def f(x: float[4]):\n    return x\n", 1, 10, "a dtype is expected"),
    "no annotation": ("def f(x):\n    return x\n", 1, 7, "x has no type"),
    "syntax": (HEAD + "    t0: f32[4] = add(x,\n", 2, 21, "not Python syntax"),
    "statement": (HEAD + "    while x: pass\n    return x\n", 2, 5, "not part of a graph"),
    "unicode before": (HEAD + "    t0: f32[4] = add('é', y)\n    return t0\n", 2, 27, "y is not"),
    "return type": ("def f(x: f32[4]) -> f32[5]:\n    return x\n", 1, 21, "x is f32[4]"),
    "return count": ("def f(x: f32[4]) -> ():\n    return x\n", 1, 21, "0 types"),
    "output form": (HEAD + "    return add(x)\n", 2, 12, "an output is"),
    "no function": ("x = 1\n", 1, 1, "a function is expected"),
    "empty": ("", 1, 1, "no function"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_point_at_the_place(name: str) -> None:
    bad, line, column, message = WRONG[name]
    with pytest.raises(CompileError) as e:
        parse(bad)
    assert e.value.code == "MC020"
    assert message in e.value.message
    assert e.value.where == f"line {line}, column {column}"
    if bad:
        code, caret = e.value.context.split("\n")
        assert code == bad.splitlines()[line - 1] and caret.index("^") == column - 1
