"""Which register allocations become names: `acc: f32[6, 4, 16] @ register` is acc_0_0 ... acc_5_3.

A tile can live in registers when every index into it is a constant once the unrolled loops are
copied, but for the last one, which may be the variable of the vector loop (plus a multiple of 16).
Other tiles become memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from minicompile.codegen.addresses import Vector
from minicompile.codegen.source import Namespace
from minicompile.ir.index import Index
from minicompile.ir.loop import Accumulate, Alloc, Bind, For, Load, Stmt, Store
from minicompile.ir.walk import walk

LANES = 16


@dataclass(frozen=True)
class Tile:
    """One register allocation; `private` was allocated inside a vector loop: one for each lane."""

    alloc: Alloc
    names: dict[tuple[int, ...], str]
    vector: bool
    private: bool

    def element(self, index: tuple[Index, ...], vector: Vector | None) -> str:
        """The name of the element or, of a vector tile, of 16 elements."""
        return self.names[_key(index, self.vector and not self.private)]

    def elements(self) -> list[str]:
        return list(self.names.values())


def _key(index: tuple[Index, ...], vector: bool) -> tuple[int, ...]:
    key = tuple(i.const for i in index)
    return (*key[:-1], key[-1] // LANES) if vector else key


@dataclass
class Tiles:
    """The tiles of a kernel by name, and the names its Binds define."""

    by_name: dict[str, Tile] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)

    def __contains__(self, buf: str) -> bool:
        return buf in self.by_name

    def __getitem__(self, buf: str) -> Tile:
        return self.by_name[buf]


@dataclass
class _Uses:
    """How a tile is indexed: by the vector variable, by constants only, or otherwise."""

    alloc: Alloc
    private: bool
    vector: bool = False
    scalar: bool = False
    other: bool = False


def find_tiles(body: tuple[Stmt, ...], names: Namespace) -> Tiles:
    """Decide for every register allocation below `body`."""
    uses: dict[str, _Uses] = {}
    _visit(body, {}, None, uses)
    tiles = Tiles(bound={s.name for s in walk(body) if isinstance(s, Bind)})
    for name, use in uses.items():
        if not (use.other or (use.vector and use.scalar)):
            tiles.by_name[name] = _tile(use, names)
    return tiles


def is_vector_loop(loop: For, vector: str | None) -> bool:
    """Is it printed as vector code? Not inside of another one, and with at most 16 lanes."""
    plain = loop.step == 1 and loop.last is None
    return loop.kind == "vector" and vector is None and plain and loop.extent <= LANES


def _visit(
    body: tuple[Stmt, ...], unrolled: dict[str, int], vector: str | None, uses: dict[str, _Uses]
) -> None:
    for s in body:
        if isinstance(s, For):
            inside = {**unrolled, s.var: s.extent} if s.kind == "unroll" else unrolled
            _visit(s.body, inside, s.var if is_vector_loop(s, vector) else vector, uses)
        elif isinstance(s, Alloc):
            if s.memory == "register":
                uses[s.buf] = _Uses(s, vector is not None)
        else:
            for access in walk(s):
                if isinstance(access, (Load, Store, Accumulate)) and access.buf in uses:
                    _classify(access.index, unrolled, vector, uses[access.buf])


def _classify(
    index: tuple[Index, ...], unrolled: dict[str, int], vector: str | None, use: _Uses
) -> None:
    *front, last = index or (Index(),)
    moving = [coef for atom, coef in last.terms if atom == vector and vector is not None]
    fixed = [t for i in front for t in i.terms] + [t for t in last.terms if t[0] != vector]
    if (
        any(atom not in unrolled for atom, _ in fixed)
        or (moving and moving != [1])
        or (moving and use.private)
    ):
        use.other = True
    elif moving:
        aligned = all(c % LANES == 0 for atom, c in last.terms if atom != vector)
        use.vector = True
        use.other |= not aligned or last.const % LANES != 0
    else:
        use.scalar = True


def _tile(use: _Uses, names: Namespace) -> Tile:
    dims = use.alloc.type.dims
    lanes_inside = use.vector and not use.private
    if lanes_inside:
        dims = (*dims[:-1], -(-dims[-1] // LANES))
    shown = dims[:-1] if lanes_inside and dims[-1] == 1 else dims
    table: dict[tuple[int, ...], str] = {}
    for key in product(*(range(n) for n in dims)):
        number = "_".join(map(str, key[: len(shown)]))
        name = f"{use.alloc.buf}_{number}" if number else use.alloc.buf
        table[key] = name if not number else names.fresh(name)
    return Tile(use.alloc, table, use.vector or use.private, use.private)
