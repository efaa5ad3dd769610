"""Random programs as users write them: torch calls on a few inputs, as Python text that can be read.

    def program(x0, x1):
        t0 = x0.transpose(0, 1)
        t1 = torch.softmax(t0, -1)
        x1.add_(t1)
        return t1, t0

Every statement is tried in eager first and dropped if PyTorch refuses it, so programs are always valid.
Inputs are multiples of 1/4, and values computed from them without rounding are *exact*: only these may
meet functions with jumps (floor, ==, argmax), where a last bit would change the whole result.
"""

from __future__ import annotations

import linecache
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st

from tests.layouts import LAYOUTS, laid_out

DTYPES = ("float32",) * 6 + ("float64", "bfloat16", "int64", "int32", "uint8", "bool")
SMALL = (3, 2, 4, 5, 1, 0, 17)
LARGE = (16, 33, 8, 1, 50, 64)  # whole vectors and tiles, and their remainders
REFUSALS = (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError)
NAMES = {**vars(torch), "torch": torch}  # what a program may call: exp, nn.functional.gelu, ...

SMOOTH = ("exp({x})", "tanh({x})", "sigmoid({x})", "nn.functional.gelu({x})", "sqrt(torch.abs({x}))",
          "sin({x})", "nn.functional.silu({x})", "log1p(torch.abs({x}))", "erf({x})",
          "nn.functional.softplus({x})", "rsqrt({x} * {x} + 1)", "reciprocal({x} * {x} + 2)")  # fmt: skip
EXACT = (
    "neg({x})",
    "abs({x})",
    "relu({x})",
    "clamp({x}, -1, 1)",
    "square({x})",
    "clamp({x}, min=0)",
)
JUMPS = ("floor({x})", "sign({x})", "round({x})", "logical_not({x})", "isnan({x})", "trunc({x})")
PAIRS = ("{x} + {y}", "{x} - {y}", "{x} * {y}", "torch.maximum({x}, {y})", "torch.minimum({x}, {y})",
         "torch.add({x}, {y}, alpha=2)", "2 - {x} * {y}", "torch.where({x} > 0, {x}, {y})")  # fmt: skip
QUOTIENTS = ("{x} / (abs({y}) + 1)", "torch.atan2({x}, {y})", "torch.hypot({x}, {y})")
COMPARISONS = ("{x} < {y}", "{x} == {y}", "{x} >= 1", "({x} > 0) & ({y} > 0)", "{x} != {y}")
VIEWS = ("{x}.transpose({d}, {e})", "{x}.unsqueeze({d})", "{x}.flatten()", "{x}.reshape(-1)",
         "{x}.squeeze()", "{x}[..., 1:]", "{x}[::2]", "{x}[-1]", "{x}[None]", "{x}.expand(2, *{x}.shape)",
         "{x}.movedim({d}, {e})", "{x}.unflatten({d}, (1, -1))", "{x}.select({d}, 0)",
         "{x}.narrow({d}, 0, 1)", "{x}.unfold({d}, 2, 1)", "{x}.diagonal()", "{x}.chunk(2, {d})[0]",
         "{x}.split(2, {d})[-1]", "{x}.T", "{x}.contiguous()", "{x}.t()", "{x}[:, 1:3]")  # fmt: skip
MOVES = ("torch.cat([{x}, {y}], {d})", "torch.stack([{x}, {x}], {d})", "torch.flip({x}, [{d}])",
         "torch.roll({x}, 1, {d})", "nn.functional.pad({x}, (1, 2))", "torch.tril({x})", "{x}.repeat(2, 1)",
         "nn.functional.pad({x}, (-1, 1), value=3.0)", "{x}.clone()", "torch.cat([{x}, {x}, {y}], {d})",
         "torch.triu({x}, 1)", "{x}.repeat_interleave(2, {d})", "torch.diag_embed({x})")  # fmt: skip
SUMS = ("{x}.sum()", "{x}.sum({d})", "{x}.sum({d}, keepdim=True)", "{x}.amax({d})", "{x}.amin({d}, True)",
        "{x}.cumsum({d})", "torch.max({x}, {d})[0]", "{x}.amax()")  # fmt: skip
MEANS = ("{x}.mean({d})", "{x}.var({d}, correction=0)", "{x}.std()", "{x}.logsumexp({d})", "{x}.norm()",
         "{x}.mean()", "torch.softmax({x}, {d})", "torch.log_softmax({x}, {d})",
         "nn.functional.layer_norm({x}, {x}.shape[-1:])", "nn.functional.normalize({x}, dim={d})")  # fmt: skip
ORDERS = ("{x}.argmax({d})", "{x}.argmin()", "{x}.any({d})", "{x}.all()", "torch.min({x}, {d})[1]",
          "{x}.cummax({d})[0]", "({x} > 0).sum({d})")  # fmt: skip
PRODUCTS = ("{x} @ {y}", "{x} @ {y}.transpose(-1, -2)", "nn.functional.linear({x}, {y})",
            "torch.einsum('...i,...i->...', {x}, {y})", "{x}.mT @ {y}",
            "torch.addmm({x}, {x}, {y})", "torch.outer({x}, {y})")  # fmt: skip
INDEXING = ("{x}.index_select({d}, torch.tensor([0, 0]))", "{x}[torch.tensor([-1, 0])]", "{x}[[0], :]",
            "torch.gather({x}, {d}, torch.zeros_like({x}, dtype=torch.int64))", "{x}[..., torch.tensor([0])]",
            "{x}.masked_fill({y} > 0, 5)", "torch.scatter({x}, {d}, torch.zeros_like({x}, dtype=torch.int64), {x})",
            "{x}.index_add({d}, torch.tensor([0]), {y})", "torch.zeros_like({x})",
            "torch.arange({x}.shape[{d}])", "{x}.new_full((2, 3), 7)", "torch.eye({x}.shape[-1])")  # fmt: skip
CASTS = ("{x}.float()", "{x}.double()", "{x}.bfloat16()", "{x}.half()")
JUMPY_CASTS = ("{x}.long()", "{x}.int()", "{x}.bool()")
IN_PLACE = ("{x}.add_({y})", "{x}.mul_(2)", "{x}.zero_()", "{x}[0] = 1", "{x}[..., 0] = {y}", "{x}.copy_({y})",
            "{x}.clamp_(-1, 1)", "{x}.transpose({d}, {e}).mul_({y})", "{x}.relu_()", "{x}.fill_(3)",
            "{x}.masked_fill_({y} > 0, 2)", "{x}.sub_({y}, alpha=2)", "{x}[1:].neg_()", "{x} += 1",
            "{x}.view(-1)[0] = 2", "{x}[..., :1].index_fill_({d}, torch.tensor([0]), 4)")  # fmt: skip

# (templates, needs exact operands, result is exact as the operands); likelier kinds stand twice
KINDS = [
    (EXACT, False, True), (PAIRS, False, True), (PAIRS, False, True), (SMOOTH, False, False),
    (JUMPS, True, True), (QUOTIENTS, False, False), (COMPARISONS, True, True), (VIEWS, False, True),
    (VIEWS, False, True), (VIEWS, False, True), (MOVES, False, True), (SUMS, False, True),
    (MEANS, False, False), (ORDERS, True, True), (PRODUCTS, False, True), (INDEXING, True, True),
    (CASTS, False, True), (JUMPY_CASTS, True, True),
]  # fmt: skip


@dataclass(frozen=True)
class Program:
    """`text` of the function; `recipes` (shape, dtype, layout) of its inputs."""

    text: str
    recipes: tuple[tuple[tuple[int, ...], str, str], ...]

    def __repr__(self) -> str:
        return f"{self.text}# inputs: {self.recipes}"

    def inputs(self) -> list[torch.Tensor]:
        """Fresh inputs, always the same."""
        return [make_input(n, *recipe) for n, recipe in enumerate(self.recipes)]

    @property
    def function(self) -> Callable[..., Any]:
        file = f"<program {hash(self.text)}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(True), file)
        names: dict[str, Any] = dict(NAMES)
        exec(compile(self.text, file, "exec"), names)
        function: Callable[..., Any] = names["program"]
        return function


def make_input(seed: int, shape: tuple[int, ...], dtype: str, layout: str) -> torch.Tensor:
    """Multiples of 1/4 in [-2, 2], or small integers, in memory of the layout."""
    numbers = torch.Generator().manual_seed(seed)
    steps = torch.randint(-8, 9, shape, generator=numbers)
    type: torch.dtype = getattr(torch, dtype)
    return laid_out((steps / 4 if type.is_floating_point else steps.abs() // 2).to(type), layout)


@st.composite
def programs(draw: Any, sizes: tuple[int, ...] = SMALL, largest: int = 400) -> Program:
    """Programs of up to ten statements on one to three inputs, no value having more elements than `largest`."""
    shapes = st.lists(st.sampled_from(sizes), max_size=4).map(tuple)
    shapes = shapes.filter(lambda s: math.prod(s) <= largest)
    recipe = st.tuples(shapes, st.sampled_from(DTYPES), st.sampled_from(LAYOUTS))
    recipes = tuple(draw(st.lists(recipe, min_size=1, max_size=3)))
    writer = Writer(draw, [make_input(n, *r) for n, r in enumerate(recipes)], largest)
    for _ in range(draw(st.integers(1, 10))):
        if draw(st.integers(0, 5)) == 0:
            writer.mutate()
        else:
            writer.step()
    return Program(writer.finish(), recipes)


class Writer:
    """Writes statements, and runs each one to see what it gives."""

    def __init__(self, draw: Any, inputs: list[torch.Tensor], largest: int) -> None:
        self.draw, self.largest = draw, largest
        self.values: dict[str, torch.Tensor] = {f"x{n}": t for n, t in enumerate(inputs)}
        self.head = ", ".join(self.values)
        self.exact = set(self.values)
        self.lines: list[str] = []

    def step(self) -> None:
        """One more value, from the latest ones mostly."""
        templates, needs_exact, keeps_exact = self.draw(st.sampled_from(KINDS))
        names = [n for n in self.values if not needs_exact or n in self.exact]
        if not names:
            return
        text, used = self.fill(self.draw(st.sampled_from(templates)), names)
        result = self.run(text)
        if result is None or result.numel() > self.largest:
            return
        name = f"t{len(self.values)}"
        self.values[name] = result
        if keeps_exact and all(u in self.exact for u in used):
            self.exact.add(name)
        self.lines.append(f"{name} = {text}")

    def mutate(self) -> None:
        """A statement that writes to a value. What is written may be rounded, so its views are, too."""
        text, (x, y) = self.fill(self.draw(st.sampled_from(IN_PLACE)), list(self.values))
        if "index_fill" in text and not self.values[x].numel():
            return  # (without elements eager does not check the index)
        before = {n: t.clone() for n, t in self.values.items()}
        if not self.run(text, statement=True):
            return
        self.lines.append(text)
        if not {x, y} <= self.exact:
            changed = {n for n, t in self.values.items() if not torch.equal(t, before[n])}
            self.exact -= changed | {x}

    def fill(self, template: str, names: list[str]) -> tuple[str, tuple[str, str]]:
        x = self.draw(st.sampled_from(names[::-1]))
        same = [n for n in names if self.values[n].shape == self.values[x].shape]
        if "@" in template or "linear" in template or "einsum" in template:
            # (without elements PyTorch multiplies matrices of two dtypes, which its fakes refuse)
            names = same = [n for n in names if self.values[n].dtype == self.values[x].dtype]
        y = self.draw(st.sampled_from((same if self.draw(st.booleans()) else names)[::-1]))
        dims = st.integers(0, max(self.values[x].dim() - 1, 0))
        return template.format(x=x, y=y, d=self.draw(dims), e=self.draw(dims)), (x, y)

    def run(self, text: str, statement: bool = False) -> Any:
        """The tensor that an expression gives (True for a statement); None if PyTorch refuses."""
        names = {**NAMES, **self.values}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return exec(text, names) or True if statement else eval(text, names)
            except REFUSALS:
                return None

    def finish(self) -> str:
        """The text, returning one to four values, inputs perhaps among them."""
        names = st.lists(st.sampled_from(list(self.values)[::-1]), min_size=1, max_size=4)
        returned = ", ".join(self.draw(names))
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def program({self.head}):\n{body}    return [{returned}]\n"
