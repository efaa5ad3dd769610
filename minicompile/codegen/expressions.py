"""Expressions of the Loop IR as source text.

Inside a vector loop a value is a vector (16 lanes) when it varies along the loop's variable, else it
stays a scalar: operators bring scalars to all lanes by themselves.  A load is read off its step along
the variable: 0 one element, 1 a vector load, other steps strided, uneven ones gathered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from minicompile.codegen.addresses import (
    Vector,
    flat,
    scalar_text,
    step,
    varies,
    vector_text,
    without,
)
from minicompile.codegen.reuse import Reuse
from minicompile.codegen.source import ATOM, Text, literal
from minicompile.codegen.tiles import Tiles
from minicompile.ir.index import Index, add, ix, variables
from minicompile.ir.loop import Call, Const, Expr, Fold, If, IndexValue, Load, Name, dtype_of
from minicompile.ir.types import TensorType
from minicompile.ops.registry import PRIMITIVES

_BINDING = {
    **{"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6},
    **{"<": 0, "<=": 0, ">": 0, ">=": 0, "==": 0, "!=": 0, "**": 8},
}
_UNARY, _TERNARY = 7, -1


@dataclass
class Expressions:
    """Prints expressions; keeps track of what is a vector.

    `types` are the memory buffers, `tiles` those in registers, `lanes` the names that hold vectors.
    """

    reuse: Reuse
    types: dict[str, TensorType]
    tiles: Tiles
    lanes: set[str] = field(default_factory=set)
    private: set[str] = field(default_factory=set)  # memory of which each lane has its own
    vector: Vector | None = None
    mask: str = ""  # of the lanes whose memory may be touched
    conditional: int = 0  # > 0 inside an arm that is not always evaluated
    used: set[str] = field(default_factory=set)  # names of generated code to import

    # ------------------------------------------------------------------ by class

    def text(self, e: Expr) -> Text:
        if isinstance(e, Const):
            number = literal(e.value, e.dtype)
            return Text(number, binds=_UNARY if number.startswith("-") else ATOM)
        if isinstance(e, Name):
            return Text(e.name, e.name in self.lanes)
        if isinstance(e, Load):
            return self.load(e)
        if isinstance(e, Call):
            return self.call(e)
        if isinstance(e, IndexValue):
            return self.index_value(e.index)
        if isinstance(e, If):
            return self.if_(e)
        return self.fold(e)

    def typed(self, e: Expr) -> Text:
        """As `text`, but a bare constant gets its dtype: f32(0.5)."""
        if isinstance(e, Const):
            return Text(self.function(e.dtype.name, self.text(e).text))
        return self.text(e)

    def wide(self, e: Expr) -> str:
        """As 16 lanes."""
        t = self.typed(e)
        return t.text if t.vector else self.function("splat", t.text)

    def function(self, name: str, *args: str) -> str:
        self.used.add(name)
        return f"{name}({', '.join(a for a in args if a)})"

    def fold(self, e: Fold) -> Text:
        if e.buf not in self.tiles:
            return self._fold_memory(e)
        tile = self.tiles[e.buf]
        names = tile.elements()
        while len(names) > 1:
            half = len(names) // 2
            pairs = [self.combine(e.op, a, b) for a, b in zip(names[:half], names[half:])]
            names = pairs + names[2 * half :]
        return Text(self.function(f"fold_{e.op}", names[0]) if tile.vector else names[0])

    def _fold_memory(self, e: Fold) -> Text:
        """A tile that could not live in registers: one element after the other."""
        text = f"{e.buf}[0]"
        for n in range(1, self.types[e.buf].numel):
            text = self.combine(e.op, text, f"{e.buf}[{n}]")
        return Text(text)

    def combine(self, op: str, a: str, b: str) -> str:
        """The source of one step of a reduction."""
        infix = {"add": "+", "mul": "*", "or": "|", "and": "&"}
        if op in infix:
            return f"({a} {infix[op]} {b})"
        return self.function({"max": "maximum", "min": "minimum"}[op], a, b)

    # ------------------------------------------------------------------ calls

    def call(self, e: Call) -> Text:
        if e.op == "cast":
            arg = self.typed(e.args[0])
            return Text(self.function(e.dtype.name, arg.text), arg.vector)
        entry = PRIMITIVES[e.op]
        args = [self._argument(e, n) for n in range(len(e.args))]
        vector = any(a.vector for a in args)
        if not entry.infix:
            return Text(self.function(e.op, *(a.text for a in args)), vector)
        binds = _BINDING[entry.infix]
        left = args[0].text if args[0].binds >= max(binds, 1) else f"({args[0].text})"
        if entry.infix == "**":
            left = args[0].inside(binds)
        return Text(f"{left} {entry.infix} {args[1].inside(binds)}", vector, binds)

    def _argument(self, e: Call, n: int) -> Text:
        """A constant is bare if a later or earlier operand that is none says its dtype."""
        arg = e.args[n]
        if not isinstance(arg, Const):
            return self.text(arg)
        others = [a for a in e.args if not isinstance(a, Const) and dtype_of(a) is arg.dtype]
        return self.text(arg) if others and arg.dtype.kind != "b" else self.typed(arg)

    # ------------------------------------------------------------------ indices

    def index_value(self, index: Index) -> Text:
        if not varies(index, self.vector, self.lanes):
            return Text(self.function("i64", scalar_text(index)))
        return Text(self.vector_index(index), True, binds=0)

    def vector_index(self, index: Index) -> str:
        text = vector_text(index, self.vector, self.lanes)
        if "lane_index(" in text:
            self.used.add("lane_index")
        return text

    # ------------------------------------------------------------------ conditions

    def if_(self, e: If) -> Text:
        lanes = [c for c in e.conds if varies(c[1], self.vector, self.lanes)]
        uniform = [c for c in e.conds if c not in lanes]
        then, other = self._arms(e, lanes)
        if not uniform:
            return then
        vector = then.vector or other.vector
        a, b = (self._same_width(t, vector) for t in (then, other))
        test = " and ".join(self.test(c) for c in uniform)
        return Text(f"{a} if {test} else {b}", vector, _TERNARY)

    def _same_width(self, t: Text, vector: bool) -> str:
        if vector and not t.vector:
            return self.function("splat", t.text)
        return t.inside(_TERNARY)

    def _arms(self, e: If, lanes: list[tuple[int, Index, int]]) -> tuple[Text, Text]:
        """Both arms; with conditions that vary by lane, `then` already selects between them."""
        if not lanes:
            with self.arm(self.mask):
                return self.typed(e.then), self.typed(e.other)
        mask = self.reuse.names.fresh("inside")
        self.reuse.emit(f"{mask} = {' & '.join(self.lane_test(c) for c in lanes)}")
        with self.arm(f"{self.mask} & {mask}" if self.mask else mask):
            then = self.typed(e.then)
        outside = f"~{mask}" if isinstance(e.other, Load | If | Call) else ""
        with self.arm(" & ".join(m for m in (self.mask, outside) if m)):
            other = self.typed(e.other)
        return Text(self.function("where", mask, then.text, other.text), True), other

    @contextmanager
    def arm(self, mask: str) -> Iterator[None]:
        before, self.mask = self.mask, mask
        self.conditional += 1
        yield
        self.conditional -= 1
        self.mask = before

    def test(self, cond: tuple[int, Index, int]) -> str:
        """lo <= index < hi, the same in all lanes."""
        lo, index, hi = cond
        if variables(index) & self.tiles.bound:
            return "not " + self.function(
                "outside", scalar_text(add(index, ix(const=-lo))), str(hi - lo)
            )
        return f"{lo} <= {scalar_text(index)} < {hi}"

    def lane_test(self, cond: tuple[int, Index, int]) -> str:
        """lo <= index < hi as a mask. An index that moves by one a lane: the lanes between two bounds."""
        lo, index, hi = cond
        if self.vector is not None and step(index, self.vector, self.lanes) == 1:
            rest = without(index, self.vector.var)
            low, high = (scalar_text(add(ix(const=n), rest, -1)) for n in (lo, hi))
            return self.function("lanes_between", low, high)
        text = self.vector_index(index)
        return f"({text} >= {lo}) & ({text} < {hi})"

    # ------------------------------------------------------------------ loads

    def load(self, e: Load) -> Text:
        if e.buf in self.tiles:
            tile = self.tiles[e.buf]
            return Text(tile.element(e.index, self.vector), tile.vector)
        offset = self.offset(e.buf, e.index)
        key = (e.buf, offset, self.mask)
        if key in self.reuse.cache:
            return self.reuse.cache[key].name
        text = self._memory(e.buf, offset)
        if self.conditional or not self.reuse.again(key):
            return text
        return self.reuse.named(key, text, "v", e.buf, variables(offset))

    def offset(self, buf: str, index: tuple[Index, ...]) -> Index:
        """The element number; private memory of a vector loop has the lane as its last index."""
        if buf in self.private and self.vector is not None:
            index = (*index, ix(self.vector.var))
        return flat(index, self.types[buf].dense_strides)

    def _memory(self, buf: str, offset: Index) -> Text:
        by = step(offset, self.vector, self.lanes)
        start = (
            self.reuse.place(without(offset, self.vector.var))
            if self.vector and by is not None
            else ""
        )
        if by is None:
            return Text(self.function("gather", buf, self.vector_index(offset), self.mask), True)
        if by == 1:
            return Text(self.function("load", buf, start, self.mask), True)
        if by == 0 and not (self.conditional and self.mask):
            return Text(f"{buf}[{self.reuse.place(offset)}]")
        return Text(self.function("load_strided", buf, start, str(by), self.mask), True)
