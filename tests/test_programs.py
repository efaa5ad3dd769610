"""Random programs: every stage's interpreter and the compiled code give what eager gives.

Compared are values, dtypes, shapes and strides of the results, what the inputs hold afterwards, and
which results share memory with which inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minicompile as mc
from minicompile.errors import CompileError
from minicompile.options import optional_passes
from tests.programs import LARGE, Program, programs

QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


@settings(max_examples=100, suppress_health_check=QUIET)
@given(program=programs())
def test_program(program: Program) -> None:
    check_program(program)


@settings(max_examples=30, suppress_health_check=QUIET)
@given(program=programs(LARGE, 5000))
def test_large_program(program: Program) -> None:
    check_program(program)


@settings(max_examples=30, suppress_health_check=QUIET)
@given(program=programs(), disable=st.sets(st.sampled_from(optional_passes())))
def test_without_some_passes(program: Program, disable: set[str]) -> None:
    check_program(program, tuple(sorted(disable)))


F32 = "float32"
# Programs that went wrong once, or nearly: (statements, inputs)
LESSONS = [
    ("x0.copy_(x0); return [x0]", [((5,), F32, "expanded")]),
    ("return [x0.clone(), x0 * 1]", [((2, 1, 5), F32, "expanded")]),
    ("t = x1.sum(); x1.add_(t); return [t]", [((), "bfloat16", "offset")] * 2),
    ("t = x0.clone(); x0.mul_(2); return [t, x0, x0[1:]]", [((3, 2), F32, "gaps")]),
    ("return [nn.functional.pad(x0, (-1, 1), value=3.0)]", [((1,), F32, "offset")]),
    ("return [cat([x0[:0], x0[:0]], 1)]", [((0,), F32, "contiguous")]),
    ("return [nn.functional.batch_norm(x0, x1, x1).view(-1)]",
     [((2, 3, 4), F32, "transposed"), ((3,), F32, "contiguous")]),
    ("return [floor_divide(x0, x1), copysign(x0, x1)]",
     [((3, 4), F32, "transposed"), ((4,), F32, "contiguous")]),
    ("t = x0.sum(); return [t.index_add(0, torch.tensor([0]), t)]", [((5,), F32, "gaps")]),
    ("return [stack([x0, x0])[::2]]", [((), "bool", "offset")]),
    ("return [as_strided_copy(x0, (2, 2), (1, 2), 1)]", [((3, 4), F32, "transposed")]),
    ("return [nn.functional.adaptive_max_pool1d(x0, 3, True)[1]]", [((2, 3, 7), F32, "gaps")]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "recipes"), LESSONS, ids=[body for body, _ in LESSONS])
def test_lesson(body: str, recipes: list[Any]) -> None:
    head = ", ".join(f"x{n}" for n in range(len(recipes)))
    check_program(Program(f"def program({head}):\n    {body}\n", tuple(recipes)))


def check_program(program: Program, disable: tuple[str, ...] = ()) -> None:
    """AssertionError, naming the stage, where a stage or the compiled code differs from eager.

    `disable`: passes to leave out.
    """
    function = program.function
    want = outcome(function, program.inputs())
    try:
        compiled = mc.compile(function, fullgraph=True, disable=disable)
        compiled.prepare(*program.inputs())
    except CompileError as e:
        if e.code != "MC012":  # writes to memory with overlaps: expanded, or unfolded
            raise
        return
    for stage in compiled.stages.values():
        if stage.call is not None:
            results = stage.run(*program.inputs())
            compare(results, want[0], stage.name)
    got = outcome(compiled, program.inputs())
    compare(got[0], want[0], "run")
    compare(got[1], want[1], "what the inputs hold afterwards")
    assert got[2] == want[2], "results share memory with other inputs than in eager"


def outcome(function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """(results, inputs afterwards, for each result the numbers of the inputs that it shares memory with)"""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = function(*inputs)
    memory = [x.untyped_storage().data_ptr() for x in inputs]
    shared = [
        [n for n, m in enumerate(memory) if m and m == r.untyped_storage().data_ptr()]
        for r in results
    ]
    return results, list(inputs), shared


def compare(got: Sequence[torch.Tensor], want: Sequence[torch.Tensor], where: str) -> None:
    """Rounding may differ a little, and in half floats, one step of theirs now and then."""
    for n, (a, b) in enumerate(zip(got, want, strict=True)):
        which = f"{where}, result {n}"
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{which}: {a.dtype}{list(a.shape)}"
        dims = [d for d in range(b.dim()) if b.shape[d] > 1 and b.numel()]
        strides = [(a.stride(d), b.stride(d)) for d in dims]
        assert all(x == y for x, y in strides), f"{which}: strides {a.stride()}, not {b.stride()}"
        tolerance = 0.05 if b.dtype in (torch.bfloat16, torch.float16) else 1e-4
        size = b.double().abs().nan_to_num(0, 0, 0).amax() if b.numel() else torch.tensor(0.0)
        torch.testing.assert_close(
            a, b, rtol=tolerance, atol=tolerance * max(1.0, float(size)), equal_nan=True,
            msg=lambda m, which=which: f"{which}: {m}",
        )  # fmt: skip
