"""Random IR: whatever can be built prints, parses back to itself, and prints the same bytes again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import minicompile.ops  # noqa: F401  (fills the op table)
from minicompile.ir.graph import Graph, Group, Node, Output, TorchConst, Value, Verdict
from minicompile.ir.index import Index, Quotient
from minicompile.ir.location import Loc, Origin
from minicompile.ir.loop import (
    Accumulate,
    Alloc,
    Bind,
    Call,
    Check,
    Const,
    Expr,
    For,
    If,
    IndexValue,
    Kernel,
    Load,
    Name,
    Param,
    Stmt,
    Store,
    dtype_of,
)
from minicompile.ir.optable import scalar_dtype
from minicompile.ir.text import parse, plain, text
from minicompile.ir.types import DTYPES, TensorType, bool_, f16, f32, f64, i32, i64

# ---------------------------------------------------------------------------------- graphs

words = st.text(min_size=0, max_size=8)
numbers = st.one_of(st.integers(-3, 3), st.floats(allow_nan=False), st.booleans(), st.none())
dtypes = st.sampled_from(list(DTYPES.values()))
consts = st.sampled_from([TorchConst("torch.strided"), TorchConst("torch.device('cuda:0')")])
shapes = st.lists(st.one_of(st.integers(0, 40), st.sampled_from(["B", "T"])), max_size=4)
places = st.builds(
    Loc, st.sampled_from(["/a/m.py", "/b/my model.py", "<stdin>"]), st.integers(1, 99)
)
reasons = st.text("abc,:# ;-", max_size=12).map(lambda s: " ".join(f"because {s}".split()))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph that need not make sense: only names must be defined."""
    types = st.builds(TensorType, dtypes, shapes.map(tuple))
    inputs = [Value(f"x{i}", draw(types)) for i in range(draw(st.integers(1, 3)))]
    params = [Value(f"w{i}", draw(types)) for i in range(draw(st.integers(0, 2)))]
    values, nodes = [*inputs, *params], list[Node]()
    for i in range(draw(st.integers(0, 6))):
        leaf = st.one_of(st.sampled_from(values), numbers, words, dtypes, consts)
        args = draw(
            st.lists(st.recursive(leaf, lambda a: st.lists(a, max_size=3).map(tuple)), max_size=3)
        )
        keys = draw(st.lists(st.sampled_from(["dim", "from", "dtype"]), unique=True, max_size=2))
        attrs = tuple((k, draw(leaf)) for k in keys)
        op = draw(
            st.sampled_from(["add", "aten.add.Tensor", "aten.random.from", "torch_ops.a.b.c"])
        )
        outs = [
            Value(f"t{i}_{j}" if j else f"t{i}", draw(types))
            for j in range(draw(st.integers(0, 3)))
        ]
        origins = sorted({Origin(loc, "t") for loc in draw(st.lists(places, max_size=2))})
        nodes.append(Node(op, tuple(args), attrs, tuple(outs), tuple(origins), draw(reasons)))
        values += outs
    names = [v.name for n in nodes for v in n.outs]
    verdicts = tuple(Verdict("x0", n, draw(st.booleans()), draw(reasons)) for n in names[:2])
    first = tuple(v.name for v in nodes[0].outs) if nodes else ()
    out = st.sampled_from(values)
    outputs = [Output(draw(out)) for _ in range(draw(st.integers(0, 3)))]
    outputs.append(Output(draw(out), strides=(3, 1)))
    outputs.append(Output(draw(out), view=((2,), (1,), 0)))
    return Graph(
        "g", tuple(inputs), tuple(params), tuple(nodes), tuple(outputs), (("x0", draw(out)),),
        (Group("k0", first),) if first else (), verdicts,
    )  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_graphs(graph: Graph) -> None:
    printed = text(graph)
    again = parse(printed)
    assert plain(again) == plain(graph)
    assert text(again) == printed


# ---------------------------------------------------------------------------------- kernels

BUFFERS = {
    "x": TensorType(f32, (9, 9)), "n": TensorType(i64, (9,)), "b": TensorType(bool_, (9,)),
    "d": TensorType(f64), "h": TensorType(f16, (9, 9)), "m": TensorType(i32, (9,)),
}  # fmt: skip
BINARY = ["add", "sub", "mul", "div", "pow", "maximum", "lt", "eq", "bitand", "bitor", "remainder"]
UNARY = ["neg", "exp", "bitnot", "abs"]
NAMES = st.sampled_from(["i", "j", "s"])

indices = st.recursive(
    st.builds(
        lambda terms, const: Index(tuple(terms), const),
        st.lists(st.tuples(NAMES, st.integers(-3, 9)), max_size=3), st.integers(-9, 9),
    ),
    lambda inner: st.builds(
        lambda i, by, mod, coef, rest, const: Index(((Quotient(i, by, mod), coef), *rest), const),
        inner, st.integers(1, 9), st.booleans(), st.integers(-3, 3),
        st.lists(st.tuples(NAMES, st.integers(-3, 9)), max_size=2), st.integers(-9, 9),
    ),
    max_leaves=3,
)  # fmt: skip


@st.composite
def constants(draw: st.DrawFn) -> Const:
    dtype = draw(st.sampled_from([f32, f64, f16, i64, i32, bool_]))
    if dtype.is_float:
        return Const(draw(st.floats(allow_nan=False)), dtype)
    return Const(draw(st.booleans() if dtype is bool_ else st.integers(-9, 9)), dtype)


@st.composite
def loads(draw: st.DrawFn) -> Load:
    buf = draw(st.sampled_from(list(BUFFERS)))
    index = [draw(indices) for _ in BUFFERS[buf].shape]
    return Load(buf, tuple(index), BUFFERS[buf].dtype)


leaves = st.one_of(constants(), loads(), st.just(Name("s", i64)), st.builds(IndexValue, indices))
conditions = st.lists(st.tuples(st.integers(-9, 9), indices, st.integers(-9, 9)), max_size=2)


@st.composite
def calls(draw: st.DrawFn, inner: st.SearchStrategy[Expr]) -> Expr:
    """An op on random operands; its dtype follows from the type rule where that accepts them."""
    op = draw(st.sampled_from([*BINARY, *UNARY, "where", "cast"]))
    count = 3 if op == "where" else 2 if op in BINARY else 1
    args = tuple(draw(inner) for _ in range(count))
    try:
        dtype = scalar_dtype(op, *map(dtype_of, args))
    except TypeError:
        return args[0]
    return Call(op, args, dtype or draw(st.sampled_from([f32, i64])))


def choices(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Choices between arms of one dtype."""
    return st.builds(
        lambda conds, then, other: (
            If(tuple(conds), then, other) if dtype_of(then) is dtype_of(other) else then
        ),
        conditions, inner, inner,
    )  # fmt: skip


expressions: st.SearchStrategy[Expr] = st.recursive(
    leaves, lambda inner: st.one_of(calls(inner), choices(inner)), max_leaves=12
)


@st.composite
def statements(draw: st.DrawFn, depth: int = 2) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["bind", "store", "accumulate", "check", "for"]))
        value = draw(expressions)
        target = next((b for b, t in BUFFERS.items() if t.dtype is dtype_of(value)), "x")
        index = tuple(draw(indices) for _ in BUFFERS[target].shape)
        if kind == "bind":
            made.append(Bind("q", value, dtype_of(value)))
        elif kind == "store":
            made.append(Store(target, index, value))
        elif kind == "accumulate":
            op = draw(st.sampled_from(["add", "mul", "max", "min", "or", "and"]))
            made.append(Accumulate(target, index, value, op))
        elif kind == "check":
            made.append(Check(draw(indices), 9))
        elif depth:
            how = draw(st.sampled_from([("serial", {}), ("vector", {"active": 5}),
                                        ("parallel", {"step": 4, "last": 6})]))  # fmt: skip
            made.append(For("k", 16, how[0], draw(statements(depth=depth - 1)), **how[1]))
    return tuple(made)


@settings(max_examples=300, deadline=None)
@given(statements())
def test_kernels(body: tuple[Stmt, ...]) -> None:
    start = (
        Alloc("r", TensorType(f32), "register"),
        Store("r", (), Const(0.0, f32)),
        Bind("s", Const(0, i64), i64),
    )
    nest = For("i", 4, "serial", (For("j", 4, "serial", (*start, *body)),))
    kernel = Kernel("k", tuple(Param(n, t) for n, t in BUFFERS.items()), 1, (nest,))
    printed = text(kernel)
    again = parse(printed)
    assert again == kernel
    assert text(again) == printed
