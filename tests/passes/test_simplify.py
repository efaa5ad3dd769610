"""simplify: every law fires, keeps every bit, and the forbidden ones never fire."""

from __future__ import annotations

import pytest

from minicompile.passes.simplify import RULES
from tests.passes.harness import body, check_pass, graph

FIRES = {
    "mul_one": ("x: f32[4]", "mul(x, 1.0)", "f32[4]", "x"),
    "one_mul": ("x: f32[4]", "mul(1, x)", "f32[4]", "x"),
    "div_one": ("x: f32[4]", "div(x, 1.0)", "f32[4]", "x"),
    "sub_zero": ("x: f32[4]", "sub(x, 0.0)", "f32[4]", "x"),
    "pow_one": ("x: f32[4]", "pow(x, 1)", "f32[4]", "x"),
    "add_zero": ("x: i64[4]", "add(0, x)", "i64[4]", "x"),
    "cast_same": ("x: f32[4]", "cast(x, dtype=f32)", "f32[4]", "x"),
    "and_self": ("x: bool[4]", "bitand(x, x)", "bool[4]", "x"),
    "or_self": ("x: i64[4]", "bitor(x, x)", "i64[4]", "x"),
    "and_true": ("x: bool[4]", "bitand(x, True)", "bool[4]", "x"),
    "true_and": ("x: bool[4]", "bitand(True, x)", "bool[4]", "x"),
    "or_false": ("x: bool[4]", "bitor(x, False)", "bool[4]", "x"),
    "false_or": ("x: bool[4]", "bitor(False, x)", "bool[4]", "x"),
    "max_self": ("x: f32[4]", "maximum(x, x)", "f32[4]", "x"),
    "min_self": ("x: f32[4]", "minimum(x, x)", "f32[4]", "x"),
    "where_same": ("c: bool[4], x: f32[4]", "where(c, x, x)", "f32[4]", "x"),
    "div_power_of_two": ("x: f32[4]", "div(x, -8.0)", "f32[4]", "mul(x, -0.125)"),
    "permute_ones": (
        "x: f32[4, 1, 3]", "permute(x, dims=(1, 0, 2))", "f32[1, 4, 3]", "reshape(x, shape=(1, 4, 3))",
    ),
    "broadcast_ones": (
        "x: f32[4]", "broadcast(x, shape=(1, 4, 1), dims=(1,))", "f32[1, 4, 1]",
        "reshape(x, shape=(1, 4, 1))",
    ),
    "reduce_ones": ("x: f32[4, 1]", "reduce_max(x, dims=(1,))", "f32[4]", "reshape(x, shape=(4,))"),
}  # fmt: skip

IDENTITIES = {
    "reshape": ("x: f32[4]", "reshape(x, shape=(4,))"),
    "permute": ("x: f32[4]", "permute(x, dims=(0,))"),
    "slice": ("x: f32[4]", "slice(x, starts=(0,), stops=(4,), steps=(1,))"),
    "broadcast": ("x: f32[4]", "broadcast(x, shape=(4,), dims=(0,))"),
    "flip": ("x: f32[4]", "flip(x, dims=())"),
    "pad": ("x: f32[4]", "pad(x, low=(0,), high=(0,), value=0.0)"),
    "concat": ("x: f32[4]", "concat(x, dim=0)"),
    "reduction": ("x: f32[4]", "reduce_sum(x, dims=())"),
}

CHAINS = {
    "neg_neg": ("x: f32[4]", ["f32[4] = neg(x)", "f32[4] = neg(t0)"], "f32[4] = x"),
    "sub_neg": ("x: f32[4]", ["f32[4] = neg(x)", "f32[4] = sub(x, t0)"], "f32[4] = add(x, x)"),
    "add_neg": (
        "x: f32[4], y: f32[4]", ["f32[4] = neg(x)", "f32[4] = add(y, t0)"], "f32[4] = sub(y, x)",
    ),
    "abs_neg": ("x: f32[4]", ["f32[4] = neg(x)", "f32[4] = abs(t0)"], "f32[4] = abs(x)"),
    "abs_abs": ("x: f32[4]", ["f32[4] = abs(x)", "f32[4] = abs(t0)"], "f32[4] = abs(x)"),
    "not_not": ("x: bool[4]", ["bool[4] = bitnot(x)", "bool[4] = bitnot(t0)"], "bool[4] = x"),
    "not_eq": ("x: f32[4]", ["bool[4] = eq(x, 0.5)", "bool[4] = bitnot(t0)"], "bool[4] = ne(x, 0.5)"),
    "not_ne": ("x: f32[4]", ["bool[4] = ne(x, x)", "bool[4] = bitnot(t0)"], "bool[4] = eq(x, x)"),
    "where_not": (
        "c: bool[4], x: f32[4]", ["bool[4] = bitnot(c)", "f32[4] = where(t0, x, 0.0)"],
        "f32[4] = where(c, 0.0, x)",
    ),
    "neg_constant": ("x: f32[4]", ["f32[4] = neg(x)", "f32[4] = mul(t0, 3.0)"], "f32[4] = mul(x, -3.0)"),
    "cast_cast": (
        "x: bf16[4]", ["f32[4] = cast(x, dtype=f32)", "bf16[4] = cast(t0, dtype=bf16)"], "bf16[4] = x",
    ),
    "reshape_reshape": (
        "x: f32[4, 3]", ["f32[12] = reshape(x, shape=(12,))", "f32[3, 4] = reshape(t0, shape=(3, 4))"],
        "f32[3, 4] = reshape(x, shape=(3, 4))",
    ),
    "permute_permute": (
        "x: f32[2, 3, 4]",
        ["f32[3, 4, 2] = permute(x, dims=(1, 2, 0))", "f32[4, 3, 2] = permute(t0, dims=(1, 0, 2))"],
        "f32[4, 3, 2] = permute(x, dims=(2, 1, 0))",
    ),
    "broadcast_broadcast": (
        "x: f32[3]",
        [
            "f32[3, 2] = broadcast(x, shape=(3, 2), dims=(0,))",
            "f32[4, 3, 2] = broadcast(t0, shape=(4, 3, 2), dims=(1, 2))",
        ],
        "f32[4, 3, 2] = broadcast(x, shape=(4, 3, 2), dims=(1,))",
    ),
    "broadcast_reshape": (
        "x: f32[4]",
        ["f32[4, 1] = reshape(x, shape=(4, 1))", "f32[4, 8] = broadcast(t0, shape=(4, 8), dims=(0, 1))"],
        "f32[4, 8] = broadcast(x, shape=(4, 8), dims=(0,))",
    ),
    "permute_broadcast": (
        "x: f32[3]",
        ["f32[3, 2] = broadcast(x, shape=(3, 2), dims=(0,))", "f32[2, 3] = permute(t0, dims=(1, 0))"],
        "f32[2, 3] = broadcast(x, shape=(2, 3), dims=(1,))",
    ),
    "slice_slice": (
        "x: f32[20]",
        [
            "f32[6] = slice(x, starts=(2,), stops=(20,), steps=(3,))",
            "f32[2] = slice(t0, starts=(1,), stops=(5,), steps=(2,))",
        ],
        "f32[2] = slice(x, starts=(5,), stops=(12,), steps=(6,))",
    ),
    "slice_concat": (
        "x: f32[4], y: f32[6]",
        [
            "f32[10] = concat(x, y, dim=0)",
            "f32[2] = slice(t0, starts=(5,), stops=(8,), steps=(2,))",
        ],
        "f32[2] = slice(y, starts=(1,), stops=(4,), steps=(2,))",
    ),
    "flip_flip": (
        "x: f32[4, 3]", ["f32[4, 3] = flip(x, dims=(0,))", "f32[4, 3] = flip(t0, dims=(0, 1))"],
        "f32[4, 3] = flip(x, dims=(1,))",
    ),
    "pad_pad": (
        "x: f32[4]",
        [
            "f32[6] = pad(x, low=(1,), high=(1,), value=0.0)",
            "f32[9] = pad(t0, low=(0,), high=(3,), value=0.0)",
        ],
        "f32[9] = pad(x, low=(1,), high=(4,), value=0.0)",
    ),
    "concat_empty": (
        "x: f32[4], y: f32[0]", ["f32[4] = concat(y, x, dim=0)"], "f32[4] = x",
    ),
}  # fmt: skip


def program(inputs: str, lines: list[str]) -> str:
    """A function with values t0, t1, ...; a last line that is only a name is what is returned."""
    type, last = lines[-1].split(" = ")
    names = [f"t{i}" for i in range(len(lines))]
    rows = [f"    {n}: {' = '.join(x.split(' = '))}" for n, x in zip(names, lines)]
    if last.isidentifier():
        rows, names[-1] = rows[:-1], last
    return "\n".join([f"def f({inputs}) -> {type}:", *rows, f"    return {names[-1]}"])


def check(inputs: str, lines: list[str], after: str) -> dict[str, int]:
    """Simplify; the last value keeps its name."""
    want = program(inputs, [after]).replace("t0", f"t{len(lines) - 1}")
    _, records = check_pass("simplify,dce", program(inputs, lines), want)
    return records[0].counts


@pytest.mark.parametrize("name", FIRES)
def test_law(name: str) -> None:
    inputs, before, type, after = FIRES[name]
    assert name in check(inputs, [f"{type} = {before}"], f"{type} = {after}")


@pytest.mark.parametrize("name", IDENTITIES)
def test_identity(name: str) -> None:
    inputs, before = IDENTITIES[name]
    check(inputs, [f"f32[4] = {before}"], "f32[4] = x")


@pytest.mark.parametrize("name", CHAINS)
def test_chain(name: str) -> None:
    inputs, lines, after = CHAINS[name]
    assert name in check(inputs, lines, after)


def test_every_rule_has_a_test() -> None:
    assert {r.name for r in RULES} == {*FIRES, *CHAINS, "layout_identity"}


FORBIDDEN = {
    "x + 0.0 turns -0.0 into 0.0": ("x: f32[4]", "f32[4] = add(x, 0.0)"),
    "x - -0.0 turns -0.0 into 0.0": ("x: f32[4]", "f32[4] = sub(x, -0.0)"),
    "x * 0 keeps NaN, inf and signs": ("x: f32[4]", "f32[4] = mul(x, 0.0)"),
    "x - x is NaN for inf and NaN": ("x: f32[4]", "f32[4] = sub(x, x)"),
    "x / x is NaN for inf, NaN and 0": ("x: f32[4]", "f32[4] = div(x, x)"),
    "x / 3 rounds once": ("x: f32[4]", "f32[4] = div(x, 3.0)"),
    "1/c would be subnormal": ("x: f32[4]", f"f32[4] = div(x, {2.0**127})"),
    "x == x is false for NaN": ("x: f32[4]", "bool[4] = eq(x, x)"),
    "x ** 0.5 of -inf is inf": ("x: f32[4]", "f32[4] = pow(x, 0.5)"),
    "a permutation that moves axes": ("x: f32[2, 3]", "f32[3, 2] = permute(x, dims=(1, 0))"),
    "a broadcast that repeats": ("x: f32[1]", "f32[3] = broadcast(x, shape=(3,), dims=(0,))"),
    "a square flip": ("x: f32[3, 3]", "f32[3, 3] = flip(x, dims=(0,))"),
    "a square transposition": ("x: f32[3, 3]", "f32[3, 3] = permute(x, dims=(1, 0))"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_forbidden(name: str) -> None:
    inputs, line = FORBIDDEN[name]
    source = program(inputs, [line])
    new, records = check_pass("simplify", source, source)
    assert not records[0].changed and records[0].sentence == "simplify changed nothing"
    assert records[0].ir is new


FORBIDDEN_CHAINS = {
    "not (x < y) is not x >= y for NaN": ("x: f32[4]", ["bool[4] = lt(x, 0.5)", "bool[4] = bitnot(t0)"]),
    "f32 -> bf16 rounds": (
        "x: f32[4]", ["bf16[4] = cast(x, dtype=bf16)", "f32[4] = cast(t0, dtype=f32)"],
    ),
    "i64 -> f32 rounds": ("x: i64[4]", ["f32[4] = cast(x, dtype=f32)", "i64[4] = cast(t0, dtype=i64)"]),
    "bool forgets the number": (
        "x: i64[4]", ["bool[4] = cast(x, dtype=bool)", "i64[4] = cast(t0, dtype=i64)"],
    ),
    "pads of different values": (
        "x: f32[4]",
        [
            "f32[6] = pad(x, low=(1,), high=(1,), value=0.0)",
            "f32[8] = pad(t0, low=(1,), high=(1,), value=-0.0)",
        ],
    ),
    "a slice across both operands": (
        "x: f32[4], y: f32[4]",
        ["f32[8] = concat(x, y, dim=0)", "f32[2] = slice(t0, starts=(3,), stops=(5,), steps=(1,))"],
    ),
    "(x + a) - a rounds": ("x: f32[4]", ["f32[4] = add(x, 9.0)", "f32[4] = sub(t0, 9.0)"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FORBIDDEN_CHAINS)
def test_forbidden_chain(name: str) -> None:
    inputs, lines = FORBIDDEN_CHAINS[name]
    check_pass("simplify", program(inputs, lines), program(inputs, lines))


def test_the_sum_of_one_negative_zero_is_positive() -> None:
    before = program("x: f32[4, 1]", ["f32[4] = reduce_sum(x, dims=(1,))"])
    after = """
    def f(x: f32[4, 1]) -> f32[4]:
        t0_0: f32[4, 1] = add(x, 0.0)
        t0: f32[4] = reshape(t0_0, shape=(4,))
        return t0
    """
    check_pass("simplify", before, after)


def test_one_sweep_reaches_the_fixpoint() -> None:
    source = """
    def f(x: f32[4, 8]) -> f32[4, 8]:
        t0: f32[8, 4] = permute(x, dims=(1, 0))
        t1: f32[8, 4] = mul(t0, 1.0)
        t2: f32[4, 8] = permute(t1, dims=(1, 0))
        t3: f32[4, 8] = neg(t2)
        t4: f32[4, 8] = neg(t3)
        t5: f32[4, 8] = div(t4, 4.0)
        return t5
    """
    after = "def f(x: f32[4, 8]) -> f32[4, 8]:\n    t5: f32[4, 8] = mul(x, 0.25)\n    return t5"
    new, _ = check_pass("simplify,dce", source, after)
    check_pass(
        "simplify",
        "\n".join(body(new)).replace("t5:", "    t5:").replace("return", "    return"),
        after,
    )


def test_origins_of_merged_nodes_unite() -> None:
    before = """
    def f(x: f32[2, 6]) -> f32[3, 4]:
        t0: f32[12] = reshape(x, shape=(12,))      # m.py:1
        t1: f32[3, 4] = reshape(t0, shape=(3, 4))  # m.py:2
        t2: f32[3, 4] = mul(t1, 1.0)               # m.py:3
        return t2
    """
    after = """
    def f(x: f32[2, 6]) -> f32[3, 4]:
        t1: f32[3, 4] = reshape(x, shape=(3, 4))  # m.py:1, m.py:2, m.py:3
        return t1
    """
    _, records = check_pass("simplify,dce", before, after)
    assert records[0].sentence == "simplify simplified 2 of 3 nodes: m.py:2, m.py:3"
    assert records[1].sentence == "dce dropped 1 of 2 nodes: m.py:1"


def test_results_that_become_inputs() -> None:
    g = graph(program("x: f32[4]", ["f32[4] = mul(x, 1.0)"]))
    from minicompile.passes.manager import PassManager

    new, _ = PassManager.of("simplify").run(g)
    assert new.nodes == () and new.outputs[0].value.name == "x"
