"""Loop text: kernels print and parse back, constants keep their dtypes, errors point at the place."""

from __future__ import annotations

import pytest

import minicompile.ops  # noqa: F401  (fills the op table)
from minicompile.errors import CompileError
from minicompile.ir.index import ix
from minicompile.ir.loop import Accumulate, Bind, Call, Const, For, Kernel, Load, Name, Store
from minicompile.ir.text import parse, text
from minicompile.ir.types import bool_, f32, i64
from minicompile.ir.walk import walk

TEXTS = {
    "statements": """\
def k0(x: f32[512, 512], ids: i64[85], y: f32[512, 512], z: f32) -> (y, z):
    for i0 in parallel(85, step=6, last=506):
        acc: f32[6, 4, 16] @ register
        m: f32 @ register
        e: f32[4] @ local
        m = -inf                  # m.py:3
        for k in serial(512):
            for j2 in vector(16, active=10):
                acc[0, 1, j2] += x[i0, k]
                acc[0, 1, j2] *= 2.0
            m = max(m, x[i0, k])  # m.py:4, m.py:5
            e[k] = min(e[k], x[i0 + 1, k])
        j: i64 = ids[i0]
        check(j, 512)             # m.py:6
        barrier()
        y[j, 0] = m
        z[()] = fold_add(acc)
    for i in serial(0):
        pass
""",
    "bool accumulates": """\
def k0(x: bool[4], y: bool, z: bool) -> (y, z):
    for i in serial(4):
        y[()] |= x[i]
        z[()] &= x[i]
""",
    "indices": """\
def k0(x: f32[4, 4], y: f32[4, 4]) -> y:
    for i in serial(4):
        for j in serial(4):
            y[3 - i, -j * 2 + i] = x[i * 6 + j - 1, i // 2 * 2 + (i + j * 3) % 4]
            y[0, -1] = x[j - (i // 2) % 2, 5 - i // 2 * 3]
            y[0, 0] = x[i // 2 * -3, 7 % 4]
            y[i - j * 2, -i] = cast(index(i * 4 + 1), f32)
""",
    "parentheses": """\
def k0(x: f32, y: f32) -> y:
    a: f32 = x[()]
    b: f32 = a + a - (a - a) * a / (a * a)
    c: f32 = (a + a) ** a ** -2.0 + (a ** a) ** 2.0 + (-1.0) ** a - -1.0
    d: bool = (a < b) == (a >= b)
    e: bool = (a < b) & (b < c) | d
    y[()] = a
""",
    "choices": """\
def k0(x: f32[4], y: f32[4]) -> y:
    for i in serial(4):
        y[i] = x[i - 1] if 0 <= i - 1 < 4 and 0 <= i < 3 else 0.0
        y[i] = (1.0 if 0 <= i < 2 else x[i]) + 1.0
        y[i] = x[0] if 0 <= i < 1 else x[1] if 1 <= i < 2 else 2.0
        y[i] = (x[0] if 0 <= i < 2 else x[1]) if 0 <= i < 1 else 2.0
        y[i] = x[i] if True else 0.0
        y[i] = 1.0 if 0 <= i < 1 else 2.0
""",
    "constants": """\
def k0(x: f32[4], n: i64[4], h: f16[4], y: f32[4], b: bool[4]) -> (y, b):
    for i in serial(4):
        y[i] = where(x[i] > 0.0, x[i], nan)
        y[i] = where(b[i], f32(1.0), f32(-inf))
        y[i] = f32(1.0) + f32(2.0)
        y[i] = cast(n[i] + 1, f32) + cast(h[i], f32)
        b[i] = f32(1.0) < f32(2.0)
        b[i] = True
        b[i] = b[i] & True if 0 <= i < 2 else False
""",
    "nothing": "def k0() -> ():\n    pass\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_round_trip(name: str) -> None:
    kernel = parse(TEXTS[name])
    assert isinstance(kernel, Kernel)
    assert text(kernel) == TEXTS[name]
    assert parse(text(kernel)) == kernel


def body(code: str) -> tuple[object, ...]:
    kernel = parse(f"def k(x: f32[4], b: bool[4], y: f32[4]) -> y:\n{code}\n")
    assert isinstance(kernel, Kernel)
    return kernel.body


def test_what_is_parsed() -> None:
    (loop,) = body("    for i in serial(4):\n        y[i] += x[i] * 2.0")
    product = Call("mul", (Load("x", (ix("i"),), f32), Const(2.0, f32)), f32)
    assert loop == For("i", 4, "serial", (Accumulate("y", (ix("i"),), product, "add"),))


def test_a_name_is_a_scalar_and_a_0d_register_a_buffer() -> None:
    *_, bind, store = body("    r: f32 @ register\n    r = 0.0\n    s: f32 = r\n    y[0] = s")
    assert bind == Bind("s", Load("r", (), f32), f32)
    assert isinstance(store, Store) and store.value == Name("s", f32)


def test_a_condition_does_not_give_its_dtype_to_constants() -> None:
    (store,) = body("    y[0] = where(b[0], x[0], 1.0)")
    constant = next(c for c in walk(store) if isinstance(c, Const))
    assert constant.dtype is f32
    (store,) = body("    y[0] = cast(index(3), f32)")
    assert isinstance(store, Store) and isinstance(store.value, Call)
    assert store.value.dtype is f32


def test_0d_registers_may_be_written_with_brackets_too() -> None:
    assert body("    r: f32 @ register\n    r[()] = 1.0") == body(
        "    r: f32 @ register\n    r = 1.0"
    )


def test_outputs_without_an_arrow_are_what_is_stored_to() -> None:
    kernel = parse("def k(x: f32[4], y: f32[4], z: f32[4]):\n    y[0] = x[0]\n    z[0] = x[0]\n")
    assert isinstance(kernel, Kernel) and kernel.outputs == 2


def test_explicit_dtype_where_the_type_rule_says_otherwise() -> None:
    odd = Kernel("k", (), 0, (Bind("t", Call("add", (Const(1, i64), Const(2, i64)), f32), f32),))
    assert "t: f32 = add(i64(1), i64(2), f32)" in text(odd)
    assert parse(text(odd)) == odd
    odd = Kernel("k", (), 0, (Bind("t", Const(1, bool_), i64),))
    assert parse(text(odd)) == odd


HEAD = "def k(x: f32[4], y: f32[4]) -> y:\n    for i in serial(4):\n        "

WRONG = {
    "unknown op": (HEAD + "y[i] = plus(x[i], x[i])\n", 3, 16, "unknown op plus"),
    "loop variable as value": (HEAD + "y[i] = x[i] + i\n", 3, 23, "i is not a bound scalar"),
    "dtype unknown": (HEAD + "y[i] = exp(1.0)\n", 3, 20, "nothing here tells the dtype"),
    "cast without dtype": (HEAD + "y[i] = cast(x[i])\n", 3, 16, "cast needs a dtype"),
    "dtypes differ": (HEAD + "y[i] = x[i] + cast(x[i], f64)\n", 3, 16, "operands differ"),
    "unknown buffer": (HEAD + "y[i] = z[i]\n", 3, 16, "z is not a buffer"),
    "unknown index": (HEAD + "y[i] = x[j]\n", 3, 18, "j is not a loop variable"),
    "index form": (HEAD + "y[i] = x[i * i]\n", 3, 22, "an integer is expected"),
    "condition form": (HEAD + "y[i] = x[i] if i < 3 else 0.0\n", 3, 24, "a condition is written"),
    "max of another element": (HEAD + "y[i] = max(x[i], x[i])\n", 3, 20, "max accumulates"),
    "augmented": (HEAD + "y[i] -= x[i]\n", 3, 9, "accumulates are"),
    "loop kind": (
        "def k(y: f32) -> y:\n    for i in range(4):\n        pass\n",
        2,
        14,
        "a loop is",
    ),
    "memory": ("def k(y: f32) -> y:\n    t: f32 @ heap\n", 2, 14, "t needs a memory"),
    "no memory": ("def k(y: f32) -> y:\n    t: f32\n", 2, 5, "t needs a memory"),
    "outputs": ("def k(x: f32, y: f32) -> x:\n    pass\n", 1, 26, "a kernel writes its last"),
    "statement": (HEAD + "print(x)\n", 3, 9, "not part of a kernel"),
    "chained comparison": (HEAD + "b: bool = x[i] < x[i] < x[i]\n", 3, 19, "not an expression"),
    "no such operator": (HEAD + "y[i] = x[i] @ x[i]\n", 3, 16, "no op is written"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_point_at_the_place(name: str) -> None:
    bad, line, column, message = WRONG[name]
    with pytest.raises(CompileError) as e:
        parse(bad)
    assert e.value.code == "MC020"
    assert message in e.value.message
    assert e.value.where == f"line {line}, column {column}"
