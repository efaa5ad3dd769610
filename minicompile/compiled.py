"""`Compiled`: what `compile` returns. It captures on the first call, guards later ones, and runs.

call ─▶ latest entry's guard ─ holds ─▶ one native call
              └─ else: the other entries' guards, then capture and build a new entry
"""

from __future__ import annotations

import functools
import logging
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from minicompile.capture.captured import Captured, flatten
from minicompile.capture.guards import make_guard
from minicompile.capture.parameters import ParameterReader, ParametersChanged
from minicompile.capture.tracer import capture, is_capturing
from minicompile.check import Check, check
from minicompile.compile import Build, build
from minicompile.errors import CompileError
from minicompile.options import Options
from minicompile.stages import Stages

log = logging.getLogger("minicompile")
_GRADIENT = (
    "gradients are needed (an input or parameter requires grad and grad mode is on): this call runs "
    "eagerly; use torch.no_grad() or torch.inference_mode() to run the compiled code"
)


def _runs_eagerly(e: Exception) -> bool:
    """May the model still be right in eager? Not if our own pipeline failed: that has to be seen."""
    return not isinstance(e, CompileError) or e.code in (
        "MC002",
        "MC010",
        "MC011",
        "MC012",
        "MC013",
    )


def _kind_of_call(leaves: list[Any], structure: Any) -> Any:
    """What decides whether a call can be captured: types and shapes, and the values of other leaves."""
    return structure, tuple(
        (x.dtype, None if x.is_nested else x.shape)
        if isinstance(x, torch.Tensor)
        else (type(x), repr(x))
        for x in leaves
    )


class Entry:
    """One compiled variant: a guard, and the code for calls that satisfy it."""

    def __init__(self, built: Build) -> None:
        self.build = built
        self.captured: Captured = built.captured
        self.guard = make_guard(built.captured)
        self.holds: Callable[[Any], bool] = self.guard.check
        self.reader = ParameterReader(built.captured)
        self.inputs = built.captured.input_indices
        results = built.captured.results
        self._direct = all(r.output is not None and not r.argument for r in results)
        self._single = self._direct and len(results) == 1 and built.captured.out_spec.is_leaf()
        self._all = self.inputs == tuple(range(len(built.captured.leaves)))

    def __call__(self, leaves: Any) -> Any:
        inputs = leaves if self._all else [leaves[i] for i in self.inputs]
        outputs = self.build.run(inputs, self.reader)
        return outputs[0] if self._single else self.captured.rebuild(outputs, leaves)


class Compiled:
    """A compiled model. Call it like the model; look at `stages`, `guards`, `entries`; `check` it.

    Attributes of a module (`parameters`, `state_dict`, `eval`, ...) are the original's.
    """

    def __init__(self, model: Callable[..., Any], options: Options) -> None:
        self.options = options
        self.entries: list[Entry] = []
        self._latest: Entry | None = None
        self._lock = threading.RLock()
        self._eager: dict[Any, str] = {}  # kind of call -> why it cannot be compiled
        self._model = model  # last: from here on, new attributes are the module's
        if not isinstance(model, nn.Module):
            functools.update_wrapper(self, model, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        entry = self._latest
        if (
            entry is not None
            and not kwargs
            and len(args) == entry.captured.structure
            and entry.holds(args)
        ):
            try:
                return entry(args)
            except ParametersChanged as e:
                self._forget(entry, e)
        return self._find(args, kwargs)

    def _forget(self, entry: Entry, why: ParametersChanged) -> None:
        """The model itself changed (`.half()`, another shape): this entry can never be used again."""
        log.info("recompiling: %s", why.message)
        with self._lock:
            self.entries = [e for e in self.entries if e is not entry]
            self._latest = None

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_capturing():
            return self._model(*args, **kwargs)
        leaves, structure = flatten(args, kwargs)
        if self._needs_gradient(leaves):
            warnings.warn(_GRADIENT, stacklevel=3)
            return self._model(*args, **kwargs)
        if self._eager and _kind_of_call(leaves, structure) in self._eager:
            return self._model(*args, **kwargs)
        for entry in self.entries:
            if entry.captured.structure == structure and entry.holds(leaves):
                try:
                    result = entry(leaves)
                except ParametersChanged as e:
                    self._forget(entry, e)
                    continue
                self._latest = entry
                return result
        return self._compile_and_run(args, kwargs, leaves, structure)

    def _needs_gradient(self, leaves: list[Any]) -> bool:
        if not torch.is_grad_enabled():
            return False
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        if isinstance(self._model, nn.Module):
            tensors += self._model.parameters()
        elif isinstance(getattr(self._model, "__self__", None), nn.Module):
            tensors += self._model.__self__.parameters()  # type: ignore[attr-defined]
        return any(t.requires_grad for t in tensors)

    def _compile_and_run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], structure: Any
    ) -> Any:
        with self._lock:
            try:
                entry = self._add(args, kwargs, leaves, structure)
            except Exception as e:
                if self.options.fullgraph or not _runs_eagerly(e):
                    raise
                return self._run_eagerly(args, kwargs, _kind_of_call(leaves, structure), e)
        if entry.captured.needs_grad(leaves):
            warnings.warn(_GRADIENT, stacklevel=4)
            return self._model(*args, **kwargs)
        return entry(leaves)

    def _run_eagerly(self, args: Any, kwargs: Any, kind: Any, why: Exception) -> Any:
        """What cannot be captured runs as it is, from now on; one warning. The model's own errors stay
        its own."""
        result = self._model(*args, **kwargs)
        if not self._eager:
            warnings.warn(f"such calls run eagerly, because {why}", stacklevel=5)
        self._eager[kind] = str(why)
        return result

    def _add(self, args: Any, kwargs: Any, leaves: list[Any], structure: Any) -> Entry:
        """The entry for this call: made by another thread in the meantime, or built now."""
        for entry in self.entries:
            if entry.captured.structure == structure and entry.holds(leaves):
                return entry
        if self.entries:
            log.info("recompiling: %s", self._why(leaves, structure))
        start = time.perf_counter()
        captured = capture(self._model, args, kwargs)
        entry = Entry(build(captured, self.options, time.perf_counter() - start))
        self.entries.append(entry)
        self._latest = entry
        return entry

    def _why(self, leaves: list[Any], structure: Any) -> str:
        same = [e for e in self.entries if e.captured.structure == structure]
        if not same:
            return "the arguments have another structure"
        return same[-1].guard.explain(leaves)

    # ------------------------------------------------------------------ looking at it

    def prepare(self, *args: Any, **kwargs: Any) -> Compiled:
        """Compile for these arguments without running."""
        leaves, structure = flatten(args, kwargs)
        with self._lock:
            self._latest = self._add(args, kwargs, leaves, structure)
        return self

    @property
    def latest(self) -> Entry:
        if self._latest is None:
            raise CompileError(
                "MC002",
                "nothing has been compiled yet",
                remedy="Call the compiled model, or `.prepare(*inputs)`, first.",
            )
        return self._latest

    @property
    def stages(self) -> Stages:
        """The stages of the latest compile, by name."""
        return self.latest.build.stages

    @property
    def guards(self) -> str:
        """The guard of the latest entry, as the Python function it is."""
        return self.latest.guard.text

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run every stage on these arguments and compare with eager and with float64."""
        self.prepare(*args, **kwargs)
        return check(self._model, self.latest, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_model", "options"):
            raise AttributeError(name)
        return getattr(self._model, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Attributes of a module are set on the module: ``compiled.scale = 2`` is seen by its forward."""
        model = self.__dict__.get("_model")
        if isinstance(model, nn.Module) and name not in self.__dict__:
            setattr(model, name, value)
        else:
            object.__setattr__(self, name, value)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A decorated method: bound per instance, so that its module's parameters are found."""
        if instance is None or isinstance(self._model, nn.Module):
            return self
        bound = Compiled(self._model.__get__(instance, owner), self.options)
        name = getattr(self._model, "__name__", "")
        if name and hasattr(instance, "__dict__"):
            instance.__dict__[name] = bound
        return bound

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as model and options: a copy has its own weights and compiles anew."""
        return Compiled, (self._model, self.options)

    def __repr__(self) -> str:
        name = getattr(self._model, "__name__", type(self._model).__name__)
        return f"Compiled({name}, backend={self.options.backend!r}, entries={len(self.entries)})"
