"""On random graphs, every pass keeps the meaning, mutates nothing and gives the same result twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicompile.ir.text import parse, plain, text
from minicompile.passes.manager import PassManager
from tests.passes.harness import check_values
from tests.passes.random_graphs import random_graph

SEEDS = st.integers(min_value=0, max_value=10**9)


@pytest.mark.parametrize(
    "pipeline", ["fold", "simplify", "cse", "dce", "fuse", "fold,simplify,cse,dce,fuse"]
)
@given(seed=SEEDS)
def test_meaning_is_kept(pipeline: str, seed: int) -> None:
    g = random_graph(seed)
    before = text(g)
    new, records = PassManager.of(pipeline).run(g)
    assert text(g) == before, "mutated"
    assert text(PassManager.of(pipeline).run(g)[0]) == text(new), "not deterministic"
    check_values(g, new)
    for r in records:
        assert r.changed or r.name == "fuse" or "changed nothing" in r.sentence


@given(seed=SEEDS)
def test_cleaning_twice_changes_nothing(seed: int) -> None:
    once, _ = PassManager.of("fold,simplify,dce").run(random_graph(seed))
    twice, records = PassManager.of("simplify").run(once)
    assert twice is once, records[0].counts


@given(seed=SEEDS)
def test_fused_text_round_trips(seed: int) -> None:
    new, _ = PassManager.of("fold,simplify,cse,dce,fuse").run(random_graph(seed, size=20))
    again = parse(text(new))
    assert text(again) == text(new) and plain(again) == plain(new)


@given(seed=SEEDS)
def test_every_edge_has_a_verdict(seed: int) -> None:
    new, _ = PassManager.of("dce,fuse").run(random_graph(seed, size=20))
    group_of = {name: g.name for g in new.groups for name in g.nodes}
    for v in new.verdicts:
        assert v.reason and v.fused == (group_of[v.producer] == group_of[v.consumer])
    pairs = {(v.producer, v.consumer) for v in new.verdicts}
    assert len(pairs) == len(new.verdicts)
