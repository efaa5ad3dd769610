"""Store and Accumulate as source text: to a register tile, or to memory by its step along the lanes."""

from __future__ import annotations

from minicompile.codegen.addresses import step, without
from minicompile.codegen.expressions import Expressions
from minicompile.codegen.source import CodeWriter, Text, literal
from minicompile.codegen.tiles import Tiles
from minicompile.ir.index import Index
from minicompile.ir.loop import Accumulate, Call, Store, dtype_of
from minicompile.ops.registry import PRIMITIVES, identity

LOOSE = 4  # operators up to this strength need parentheses beside a +


class Stores:
    """Prints the statements that write. `text` prints their values."""

    def __init__(self, writer: CodeWriter, text: Expressions, tiles: Tiles) -> None:
        self.writer, self.text, self.tiles = writer, text, tiles

    def print(self, s: Store | Accumulate) -> None:
        if s.buf in self.tiles:
            self._to_register(s)
        else:
            self._to_memory(s)
            self.text.reuse.forget(bufs={s.buf})

    def _line(self, text: str, s: Store | Accumulate) -> None:
        self.writer.line(text, s.origins, "made by the compiler")

    def _to_register(self, s: Store | Accumulate) -> None:
        tile = self.tiles[s.buf]
        name = tile.element(s.index, self.text.vector)
        if isinstance(s, Store):
            value = self.text.wide(s.value) if tile.vector else self._scalar(s).text
            self._line(f"{name} = {value}", s)
            return
        if not tile.vector and self.text.vector is not None:
            self._line(f"{name} = {self._folded(s, name)}", s)
            return
        changed = self._combined(s, name)
        if self.text.mask and tile.vector:
            changed = self.text.function("where", self.text.mask, changed, name)
        self._line(f"{name} = {changed}", s)

    def _scalar(self, s: Store) -> Text:
        """The value stored to one place: of a vector, its last active lane."""
        value = self.text.typed(s.value)
        if value.vector and self.text.vector is not None:
            last = self.text.vector.active - 1
            return Text(self.text.function("lane", value.text, str(last)))
        return value

    def _combined(self, s: Accumulate, old: str) -> str:
        """`old` combined with the value; a product is added by a fused multiply-add."""
        e = s.value
        product = isinstance(e, Call) and PRIMITIVES[e.op].infix == "*" and s.op == "add"
        if product and dtype_of(e).is_float and isinstance(e, Call):
            a, b = (self.text.typed(x).text for x in e.args)
            return self.text.function("fma", a, b, old)
        text = self.text.combine(s.op, old, self.text.typed(e).inside(LOOSE))
        return text[1:-1] if text.startswith("(") else text

    def _folded(self, s: Accumulate, old: str) -> str:
        """`old` combined with all active lanes of the value."""
        value = self.text.wide(s.value)
        if self.text.mask:
            neutral = identity(s.op, dtype_of(s.value))
            value = self.text.function(
                "where", self.text.mask, value, literal(neutral, dtype_of(s.value))
            )
        text = self.text.combine(s.op, old, self.text.function(f"fold_{s.op}", value))
        return text[1:-1] if text.startswith("(") else text

    def _to_memory(self, s: Store | Accumulate) -> None:
        t, offset = self.text, self.text.offset(s.buf, s.index)
        by = step(offset, t.vector, t.lanes)
        if by is None:
            self._scattered(s, offset)
        elif by == 0:
            place = f"{s.buf}[{t.reuse.place(offset)}]"
            if isinstance(s, Store):
                value = self._scalar(s).text
            else:
                value = self._folded(s, place) if t.vector else self._combined(s, place)
            self._line(f"{place} = {value}", s)
        else:
            assert t.vector is not None
            start = t.reuse.place(without(offset, t.vector.var))
            self._stored(s, start, by)

    def _stored(self, s: Store | Accumulate, start: str, by: int) -> None:
        """16 elements, evenly spaced."""
        t = self.text
        stride = "" if by == 1 else str(by)
        suffix = "" if by == 1 else "_strided"
        if isinstance(s, Store):
            value = t.typed(s.value).text
        else:
            value = self._combined(s, t.function(f"load{suffix}", s.buf, start, stride, t.mask))
        self._line(t.function(f"store{suffix}", s.buf, start, stride, value, t.mask), s)

    def _scattered(self, s: Store | Accumulate, offset: Index) -> None:
        """Elements whose numbers are computed; two lanes may mean the same one."""
        t = self.text
        name = "scatter" if isinstance(s, Store) else f"accumulate_{s.op}"
        value = t.typed(s.value).text
        self._line(t.function(name, s.buf, t.vector_index(offset), value, t.mask), s)
