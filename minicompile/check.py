"""Does every stage mean the same? A table of stages and their errors against eager and float64."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from minicompile.ir.torch_call import twins
from minicompile.stages import max_error

if TYPE_CHECKING:
    from minicompile.compiled import Entry


@dataclass(frozen=True)
class Row:
    """Largest absolute error of one stage against eager, and against the model in float64."""

    stage: str
    eager: float
    float64: float | None


@dataclass(frozen=True)
class Check:
    """`rows` in stage order, the last one is the compiled code; `eager` is eager's own error."""

    rows: tuple[Row, ...]
    eager: float | None

    @property
    def ok(self) -> bool:
        """Is the final error against float64 at most twice eager's own (plus one rounding)?"""
        last = self.rows[-1]
        if last.float64 is None or self.eager is None:
            return last.eager <= 1e-4
        return last.float64 <= 2 * self.eager + 1e-7

    def __str__(self) -> str:
        rows = [("stage", "max error vs eager", "vs float64")]
        rows.append(("eager", "0", _number(self.eager)))
        rows += [(r.stage, _number(r.eager), _number(r.float64)) for r in self.rows]
        return "\n".join(f"{a:<14} {b:>18} {c:>11}" for a, b, c in rows)


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.2e}" if x else "0"


def check(
    model: Callable[..., Any], entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Check:
    """Run eager, float64, every stage and the compiled code on copies of the arguments."""
    with torch.no_grad():
        want = _tensors(model, model, args, kwargs)
        exact = _in_float64(model, args, kwargs)

        def row(name: str, f: Callable[..., Any]) -> Row:
            got = _tensors(f, model, args, kwargs)
            return Row(name, max_error(got, want), max_error(got, exact) if exact else None)

        stages = [s for s in entry.build.stages.values() if s.call is not None]
        rows = [row(s.name, s.run) for s in stages]
        rows.append(row("run", lambda *a, **k: entry(_leaves(a, k))))
        return Check(tuple(rows), max_error(want, exact) if exact else None)


def _leaves(args: Any, kwargs: Any) -> list[Any]:
    from minicompile.capture.captured import flatten

    return flatten(args, kwargs)[0]


def _copied(args: Any, kwargs: Any) -> Any:
    leaves, structure = tree_flatten((args, kwargs))
    return tree_unflatten(twins(leaves), structure)


def _tensors(f: Callable[..., Any], model: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors f returns; arguments, the state of the module and of the random numbers are left as
    they were, so that all that is compared starts from the same."""
    state = copy.deepcopy(model.state_dict()) if isinstance(model, nn.Module) else None
    args, kwargs = _copied(args, kwargs)
    with torch.random.fork_rng(devices=[]):
        out = [x.clone() for x in tree_leaves(f(*args, **kwargs)) if isinstance(x, torch.Tensor)]
    if state is not None:
        model.load_state_dict(state)
    return out


def _in_float64(model: Callable[..., Any], args: Any, kwargs: Any) -> list[torch.Tensor] | None:
    """What the model gives with all floats in double precision; None if it cannot run so."""

    def up(x: torch.Tensor) -> torch.Tensor:
        return x.double() if x.is_floating_point() else x

    double = copy.deepcopy(model).double() if isinstance(model, nn.Module) else model
    args, kwargs = tree_map(
        lambda x: up(x) if isinstance(x, torch.Tensor) else x, _copied(args, kwargs)
    )
    try:
        with torch.random.fork_rng(devices=[]):
            return [x for x in tree_leaves(double(*args, **kwargs)) if isinstance(x, torch.Tensor)]
    except RuntimeError:
        return None  # the model fixes a dtype inside: nothing exact to compare with
