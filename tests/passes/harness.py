"""What every pass is held to.

    check_pass("simplify,dce", before, after)     # IR as text; `same` in place of `after`: nothing changes

checks the result's text, and that the input was not mutated, that unchanged parts are shared, that the
result is the same every time, well formed, and means the same as before on random inputs.
"""

from __future__ import annotations

import textwrap

import torch

import minicompile.passes  # noqa: F401  (registers them)
from minicompile.ir.graph import Graph
from minicompile.ir.interpret import run
from minicompile.ir.text import parse, text
from minicompile.ir.types import TensorType
from minicompile.passes.manager import PassManager, Record


def graph(source: str) -> Graph:
    """Parse indented text. Lines without a comment get the origin m.py:1."""
    rows = textwrap.dedent(source).strip().splitlines()
    rows = [r + "  # m.py:1" if " = " in r and "#" not in r else r for r in rows]
    parsed = parse("\n".join(rows) + "\n")
    assert isinstance(parsed, Graph)
    return parsed


def body(g: Graph, comments: bool = False) -> list[str]:
    """The lines of a graph's text, without comments unless asked for."""
    lines = text(g).splitlines()
    return [
        " ".join((x if comments else x.split("#")[0]).split())
        for x in lines
        if x.split("#")[0].strip()
    ]


def check_pass(
    pipeline: str, before: str, after: str, *, values: bool = True, exact: bool = True
) -> tuple[Graph, tuple[Record, ...]]:
    """Run the pipeline on `before` and compare with `after` (origins count where `after` has any)."""
    old = graph(before)
    kept = text(old)
    new, records = PassManager.of(pipeline).run(old)
    want = graph(after)
    assert body(new, "#" in after) == body(want, "#" in after)
    assert text(old) == kept, "the pass mutated its input"
    assert text(PassManager.of(pipeline).run(old)[0]) == text(new), "two runs differ"
    shared = {id(n) for n in old.nodes}
    for node in new.nodes:
        twin = [n for n in old.nodes if n == node]
        assert not twin or id(node) in shared, f"{node.op} was rebuilt although it did not change"
    if values:
        check_values(old, new, exact=exact)
    return new, records


def random_inputs(g: Graph, seed: int = 0) -> list[torch.Tensor]:
    """One tensor for each argument; floats include both zeros, both infinities and NaN."""
    generator = torch.Generator().manual_seed(seed)
    return [random_tensor(v.type, generator) for v in g.arguments]


def random_tensor(type: TensorType, generator: torch.Generator) -> torch.Tensor:
    if type.dtype.is_float:
        x = torch.randn(type.dims, generator=generator, dtype=torch.float64)
        special = torch.tensor(
            [0.0, -0.0, float("inf"), float("-inf"), float("nan")], dtype=torch.float64
        )
        pick = torch.randint(0, 40, type.dims, generator=generator)
        return torch.where(pick < 5, special[pick.clamp(max=4)], x).to(type.dtype.torch)
    if type.dtype.kind == "b":
        return torch.randint(0, 2, type.dims, generator=generator).bool()
    return torch.randint(0, 4, type.dims, generator=generator).to(type.dtype.torch)


def check_values(old: Graph, new: Graph, *, exact: bool = True) -> None:
    """Both graphs give the same bits (or, not exact, nearly the same numbers)."""
    for seed in range(3):
        inputs = random_inputs(old, seed)
        wants = run(old, [x.clone() for x in inputs])
        gots = run(new, [x.clone() for x in inputs])
        for want, got in zip(wants, gots, strict=True):
            if not exact:
                torch.testing.assert_close(got, want, equal_nan=True)
                continue
            assert got.dtype is want.dtype and got.shape == want.shape
            torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
            if want.is_floating_point():
                numbers = ~want.isnan()
                assert torch.equal(got.signbit()[numbers], want.signbit()[numbers]), (
                    "a zero changed sign"
                )
