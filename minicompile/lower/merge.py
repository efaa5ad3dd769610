"""Loop fusion: neighbouring nests over the same space become one, and buffers between them shrink.

    for i: t[i] = f(x[i])                    for i:
    for j: y[j] = g(t[j])          ->            t: f32 = f(x[i])
                                                 y[i] = g(t)

Law: two loops may be merged when each iteration of the second uses only what the *same* iteration of
the first made: in every buffer that they share, some axis is indexed by exactly the loop variable in
both.  In PyTorch Inductor this is the scheduler's fusion; in Halide it is compute_at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from minicompile.ir.index import Index, ix
from minicompile.ir.loop import Accumulate, Alloc, Call, For, Kernel, Program, Stmt
from minicompile.ir.walk import substitute, walk
from minicompile.lower.access import (
    access,
    depends,
    perfect_loops,
    shared_buffers,
    touches,
)
from minicompile.lower.hoist import hoist_invariants
from minicompile.lower.shrink import shrink_buffers
from minicompile.passes.base import Pass, register


@register
@dataclass(frozen=True)
class Merge(Pass):
    """Merge loops inside each kernel, then shrink the buffers that only one iteration needs.

    before:  for i0: t[i0] = exp(x[i0])      after:  for i0:
             for i0__1: y[i0__1] = t[i0__1] + 1.0        t: f32 = exp(x[i0])
                                                         y[i0] = t + 1.0
    """

    name = "merge"
    level = "loop"
    requires = ("loops",)

    def run(self, program: Program) -> Program:
        return replace(program, kernels=tuple(merge_kernel(k) for k in program.kernels))


def merge_kernel(kernel: Kernel) -> Kernel:
    return hoist_invariants(shrink_buffers(replace(kernel, body=merge_stmts(kernel.body))))


def merge_stmts(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """One list of statements with every loop merged into an earlier one where the law allows."""
    done: list[Stmt] = []
    for s in stmts:
        if isinstance(s, For):
            s = replace(s, body=merge_stmts(s.body)) if len(perfect_loops(s)) == 1 else s
            if _merge_into(done, s):
                continue
        done.append(s)
    return tuple(done)


def _merge_into(done: list[Stmt], loop: For) -> bool:
    """Merge `loop` with one of the loops in `done`: first choice is the one with the very same space."""
    loops = [at for at in range(len(done) - 1, -1, -1) if isinstance(done[at], For)]
    return any(_merge_at(done, at, loop, whole) for whole in (True, False) for at in loops)


def _merge_at(done: list[Stmt], at: int, loop: For, whole: bool) -> bool:
    """Merge `loop` with done[at], if the statements in between can step aside."""
    first, between = done[at], done[at + 1 :]
    assert isinstance(first, For)
    late, early = access(loop), access(first)
    loop_can_rise = not any(depends(late, access(s)) for s in between)
    first_can_sink = not any(depends(access(s), early) for s in between)
    merged = merge_nests(first, loop, whole) if loop_can_rise or first_can_sink else None
    if merged is None:
        return False
    if loop_can_rise:
        done[at] = merged
    else:
        done[at:] = [*between, merged]
    return True


def merge_nests(a: For, b: For, only_whole: bool = False) -> For | None:
    """a and b as one nest, or None. Their loops are reordered so that the common ones are outside.

    `only_whole`: only if all loops of both go together.
    """
    loops_a, loops_b = perfect_loops(a), perfect_loops(b)
    pairs = _matching_loops(a, loops_a, b, loops_b)
    if not pairs:
        return None
    whole = len(pairs) == len(loops_a) == len(loops_b)
    if not whole and (only_whole or _is_contraction(a) or _is_contraction(b)):
        return None  # (a partly merged contraction could not be tiled)
    in_a, in_b = [x for x, _ in pairs], [y for _, y in pairs]
    rest_a = _nest([x for x in loops_a if x not in in_a], loops_a[-1].body)
    rest_b = _nest([y for y in loops_b if y not in in_b], loops_b[-1].body)
    rest_b = substitute(rest_b, {y.var: ix(x.var) for x, y in pairs})
    body = merge_stmts(_allocs_first(rest_a + rest_b))
    (result,) = _nest(in_a, body)
    assert isinstance(result, For)
    return result


def _allocs_first(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(s for s in stmts if isinstance(s, Alloc)) + tuple(
        s for s in stmts if not isinstance(s, Alloc)
    )


def _nest(loops: Sequence[For], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body


def _matching_loops(
    a: For, loops_a: list[For], b: For, loops_b: list[For]
) -> list[tuple[For, For]]:
    """Pairs of loops (one of a, one of b) that may be merged, in a's order."""
    first, second = access(a), access(b)
    if first.scattered or second.scattered:
        return []
    shared = shared_buffers(first, second)
    pairs: list[tuple[For, For]] = []
    free = list(loops_b)
    for x in loops_a:
        for y in free:
            same = x.extent == y.extent and x.kind == y.kind == "serial"
            if same and all(
                _same_axis(touches(first, n), x.var, touches(second, n), y.var) for n in shared
            ):
                pairs.append((x, y))
                free.remove(y)
                break
    if not shared and not (len(pairs) == len(loops_a) == len(loops_b)):
        return []  # nothing in common but a size: only nests over the very same space
    if not shared and any(loops_b.index(y) != n for n, (_, y) in enumerate(pairs)):
        return []
    return pairs


def _same_axis(
    in_a: list[tuple[Index, ...]], var_a: str, in_b: list[tuple[Index, ...]], var_b: str
) -> bool:
    """Is there an axis that every access of a indexes by var_a alone and every access of b by var_b?"""
    ranks = {len(i) for i in in_a + in_b}
    if len(ranks) != 1:
        return False
    return any(
        all(i[axis] == ix(var_a) for i in in_a) and all(i[axis] == ix(var_b) for i in in_b)
        for axis in range(ranks.pop())
    )


def _is_contraction(loop: For) -> bool:
    """Does the nest sum products? (These are tiled as a whole.)"""
    return any(
        isinstance(s, Accumulate)
        and isinstance(s.value, Call)
        and s.op == "add"
        and _is_product(s.value)
        for s in walk(loop)
    )


def _is_product(e: Call) -> bool:
    return len(e.args) == 2 and e.op == "mul"
