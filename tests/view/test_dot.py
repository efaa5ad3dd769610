"""Drawings: well formed, within the palette, deterministic, legible, safe against hostile names."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from minicompile.ir.graph import Graph, Value
from minicompile.ir.loop import Kernel
from minicompile.ir.text import parse
from minicompile.view import diff, dot, legend, svg
from minicompile.view.dot_buffers import dot_buffers
from minicompile.view.style import PALETTE, escape, identifier, words
from tests.view import graphs

ALL = {
    "softmax": lambda: dot(graphs.softmax()),
    "blocks": lambda: dot(graphs.blocks(3)),
    "unfolded": lambda: dot(graphs.blocks(3), fold=False),
    "many blocks": lambda: dot(graphs.blocks(300), fold=False),
    "fused": lambda: dot(graphs.fused()),
    "kernel": lambda: dot(parse(graphs.PROGRAM)),
    "buffers": lambda: dot(graphs.planned(graphs.softmax())),
    "diff": lambda: diff(graphs.blocks(2), graphs.blocks(2, odd=1), "swap").dot,
    "legend": legend,
    "source": lambda: dot("text"),
}


def size(picture: str) -> tuple[int, int]:
    """Width and height of an SVG in points."""
    found = re.search(r'<svg width="(\d+)pt" height="(\d+)pt"', picture)
    assert found is not None
    return int(found[1]), int(found[2])


@pytest.mark.parametrize("name", ALL)
def test_renders_as_xml(name: str) -> None:
    ET.fromstring(svg(ALL[name]()))


@pytest.mark.parametrize("name", ALL)
def test_colours_are_of_the_palette(name: str) -> None:
    assert set(re.findall(r"#[0-9a-f]{6}\b", ALL[name]())) <= set(PALETTE.values())


@pytest.mark.parametrize("name", ALL)
def test_only_ascii_and_courier(name: str) -> None:
    text = ALL[name]()
    assert text.isascii()
    assert set(re.findall(r'fontname="(\w+)"', text)) == {"Courier"}


@pytest.mark.parametrize("name", ALL)
def test_ids_are_plain_and_unique(name: str) -> None:
    ids = re.findall(r' \[?id="([^"]*)"', ALL[name]())
    assert all(re.fullmatch(r"\w+", i) for i in ids)
    nodes = [i for i in ids if i.startswith("n_")]
    assert len(nodes) == len(set(nodes))


def test_two_processes_draw_the_same_bytes() -> None:
    code = "from tests.view import graphs; from minicompile.view import dot; print(dot(graphs.fused()))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(runs) == 1


# ---------------------------------------------------------------------------------- folding


def test_equal_blocks_are_drawn_once() -> None:
    text = dot(graphs.blocks(4))
    assert ">x4<" in text and "next block, 3 times" in text
    assert "n_a0 " in text and "n_a1 " not in text


def test_a_block_that_differs_is_drawn_by_itself() -> None:
    text = dot(graphs.blocks(5, odd=2))
    assert text.count(">x2<") == 2
    assert "n_a2 " in text


def test_without_folding_everything_is_there() -> None:
    text = dot(graphs.blocks(4), fold=False)
    assert all(f"n_a{i} " in text for i in range(4))
    assert ">x4<" not in text


def test_folding_keeps_drawings_small() -> None:
    assert size(svg(dot(graphs.blocks(3))))[1] == size(svg(dot(graphs.blocks(300))))[1]


def test_too_many_boxes_are_closed_and_it_is_said() -> None:
    text = dot(graphs.blocks(300), fold=False)
    assert "600 operations; modules are closed to one box" in text
    assert text.count("boxes, closed") == 300


# ---------------------------------------------------------------------------------- content


def test_kernels_are_boxes_and_verdicts_are_on_edges() -> None:
    text = dot(graphs.fused())
    assert "kept apart" in text and "the reduction needs whole rows" in text
    assert "(32, 10) and" not in text  # iteration spaces stay in the text
    assert "cluster_c_k1_0" in text


def test_parameters_live_in_their_user() -> None:
    made = graphs.graph(
        "def f(x: f32[8], *, w: f32[8]) -> f32[8]:\n    t0: f32[8] = add(x, w)\n    return t0"
    )
    text = dot(made)
    assert "with w: f32" in text and "n_w " not in text


def test_loops_show_their_kind_and_memory() -> None:
    text = dot(parse(graphs.PROGRAM))
    assert "<B>parallel</B>" in text and PALETTE["register"] in text
    assert "acc += x" in text


def test_lifetimes_and_reuse() -> None:
    chain = "".join(f"    t{i + 1}: f32[8] = scan_sum(t{i}, dim=0)  # m.py:1\n" for i in range(4))
    made = graphs.graph(f"def f(t0: f32[8]) -> f32[8]:\n{chain}    return t4")
    text = dot(graphs.planned(made))
    assert "arena: " in text and "reuses t1" in text


def test_no_buffers() -> None:
    program = replace(graphs.planned(graphs.softmax()), buffers=(), calls=())
    assert "no buffers" in dot_buffers(program)
    assert "no kernels" in dot(replace(program, kernels=()))


# ---------------------------------------------------------------------------------- hostile names


@pytest.mark.parametrize(
    "name", ['a"b', "<B>", "a]b[", "x -> y", "&amp;", "\u00e9\u4e2d", "a\nb", "]]>", "{}|", "'; --"]
)
def test_hostile_names_are_text(name: str) -> None:
    value = Value(name, graphs.softmax().inputs[0].type)
    made = replace(graphs.softmax(), inputs=(value,))
    ET.fromstring(svg(dot(made)))
    assert escape(name).isascii() and "<" not in escape(name)


def test_empty_text_gives_no_font() -> None:
    assert words("") == "" and words("", "ink", 9, bold=True) == ""


def test_identifiers() -> None:
    assert identifier("n", "a-b.c") == "n_a_b_c"


# ---------------------------------------------------------------------------------- differences


def test_diff_of_graphs() -> None:
    before, after = graphs.blocks(2), graphs.blocks(2, odd=1)
    found = diff(before, after, "swap")
    assert found.changed == ("a1",) and not found.added and not found.removed
    assert str(found) == "swap: 1 changed, of 4 nodes: m.py:3"
    assert "was exp" in found.dot and PALETTE["changed"] in found.dot


def test_removed_nodes_are_drawn_dashed_in_their_place() -> None:
    before = graphs.softmax()
    after = before.with_nodes(n for n in before.nodes if n.out.name != "t0_4")
    text = diff(before, after, "drop").dot
    assert 'STYLE="DASHED"' in text
    assert text.index("n_t0_3 ") < text.index("n_t0_4 ") < text.index("n_t0_5 ")


def test_nothing_changed() -> None:
    found = diff(graphs.softmax(), graphs.softmax(), "cse")
    assert not found and str(found) == "cse: nothing changed in 7 nodes"


def test_large_graphs_show_what_changed_and_its_neighbours() -> None:
    text = diff(graphs.blocks(50), graphs.blocks(50, odd=20)).dot
    assert "n_a20 " in text and "n_b19 " in text and "n_a5 " not in text
    assert "unchanged nodes are not drawn" in text


def test_a_new_level_says_how_it_grew() -> None:
    program = graphs.planned(graphs.softmax())
    assert str(diff(graphs.softmax(), program, "lower")).startswith("lower: 7 nodes became")
    assert str(diff(None, graphs.softmax())) == "7 nodes"


def test_diff_of_programs_marks_kernels() -> None:
    program = graphs.planned(graphs.softmax())
    other = replace(program, kernels=(replace(program.kernels[0], body=()), *program.kernels[1:]))
    found = diff(program, other)
    assert found.changed == (program.kernels[0].name,)
    assert PALETTE["added"] in found.dot


def test_kernel_is_an_ir_of_its_own() -> None:
    assert isinstance(parse(graphs.PROGRAM), Kernel)
    assert isinstance(graphs.softmax(), Graph)
