"""The compiler on one screen: from a model and its arguments to an executable, every stage kept.

capture ▸ functionalize ▸ decompose ▸ fold ▸ simplify ▸ cse ▸ dce ▸ fuse        Graph IR
        ▸ lower ▸ merge ▸ tile ▸ vectorize ▸ parallel ▸ buffers                 Loop IR
        ▸ codegen                                                               Numba source
        ▸ build                                                                 machine code
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from minicompile.capture.captured import Captured
from minicompile.errors import CompileError
from minicompile.ir.loop import Program
from minicompile.options import BACKENDS, Options, backends
from minicompile.stages import Stage, Stages

log = logging.getLogger("minicompile")


@dataclass(frozen=True)
class Build:
    """The result of one compile. `run` maps (inputs, parameters) to the graph's outputs."""

    captured: Captured
    stages: Stages
    run: Callable[..., Any]

    @property
    def seconds(self) -> float:
        return sum(s.seconds for s in self.stages.values())


def build(captured: Captured, options: Options, capture_seconds: float = 0.0) -> Build:
    """Run the pipeline on one captured call. CompileError, with the IR around, if a stage fails."""
    import minicompile.lower  # noqa: F401  (registers the loop passes)
    from minicompile.passes.manager import Hooks, PassManager, default_verify

    stages: list[Stage] = []

    def keep(name: str, ir: Any, seconds: float, note: str) -> None:
        before = stages[-1] if stages else None
        stages.append(Stage(name, ir, seconds, note, before, _interpreter(captured, ir)))
        if options.verbose:
            print(f"{name:<14} {seconds * 1e3:8.1f} ms  {note}")
        log.debug("%s: %s (%.1f ms)", name, note, seconds * 1e3)

    graph = captured.graph
    keep("capture", graph, capture_seconds, f"{len(graph.nodes)} ATen calls")
    manager = PassManager.of(
        options.pipeline,
        disable=options.disable,
        verify=default_verify if options.verify else None,
        hooks=Hooks(after=lambda step, r: keep(r.name, r.ir, r.seconds, r.note)),
    )
    program, _ = manager.run(graph)
    if options.backend == "interpreter":
        return Build(captured, Stages(stages), _interpret(stages[-1].ir))
    if not isinstance(program, Program):
        raise CompileError(
            "MC002", "the pipeline ends before `lower`", remedy="Keep all its stages."
        )
    executable = _generate(program, options, keep)
    return Build(captured, Stages(stages), executable)


def _generate(program: Program, options: Options, keep: Callable[..., None]) -> Callable[..., Any]:
    """codegen and build: source, machine code, and the callable that runs it."""
    from minicompile.codegen.numba_cpu import generate
    from minicompile.runtime.build import build as build_native
    from minicompile.runtime.executable import Executable

    start = time.perf_counter()
    source = generate(program)
    keep("codegen", source, time.perf_counter() - start, f"{len(source.kernels)} kernels")
    start = time.perf_counter()
    native = build_native(source, options.cache_dir)
    seconds = time.perf_counter() - start
    keep("build", source, seconds, "from the cache" if native.cached else "compiled by Numba")
    return Executable(program, native)


def _interpret(ir: Any) -> Callable[..., Any]:
    from minicompile.ir.interpret import run

    return lambda inputs, params: run(ir, [*inputs, *params])


def _interpreter(captured: Captured, ir: Any) -> Callable[..., Any] | None:
    """The stage as a function of the model's arguments; it works on copies, so nothing is mutated."""
    from minicompile.ir.graph import Graph

    if not isinstance(ir, (Graph, Program)):
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        from minicompile.capture.captured import flatten
        from minicompile.ir.torch_call import twins

        leaves = twins(flatten(args, kwargs)[0])
        inputs = [leaves[i] for i in captured.input_indices]
        params = twins([slot.read() for slot in captured.slots])
        with torch.no_grad():
            return captured.rebuild(_interpret(ir)(inputs, params), leaves)

    return call


# ---------------------------------------------------------------------------------- public face


def compile(
    model: Callable[..., Any] | None = None,
    *,
    backend: str = "cpu",
    mode: str = "default",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    options: Mapping[str, Any] | None = None,
    disable: tuple[str, ...] | list[str] = (),
    freeze: bool = False,
    verbose: bool = False,
) -> Any:
    """Compile a module, function or method; used as a call or as a decorator, like torch.compile.

    Nothing happens before the first call, which captures, compiles and runs; later calls with other
    shapes, dtypes or values of Python arguments compile again, once each.

    backend    "cpu", "interpreter", or any name torch.compile knows, to which the model is then handed
    mode       "default", "reduce-overhead", "max-autotune" (alias "reduce-all")
    fullgraph  raise where the model cannot be captured whole; otherwise such calls run eagerly
    dynamic    accepted as in torch.compile; every shape is compiled on its own so far
    options    a dictionary with fields of `Options`; it wins over the keywords
    disable    names of passes to leave out: ("cse", "tile")
    freeze     the promise that parameters no longer change; nothing depends on it so far
    verbose    print one line per stage

    Raises CompileError MC001 for unknown names, MC002 for something that cannot be called.
    """
    from minicompile.compiled import Compiled

    if isinstance(disable, str):
        disable = (disable,)
    if dynamic not in (None, True, False):
        raise CompileError("MC002", f"dynamic should be None, True or False, not {dynamic!r}")
    if model is None:
        return partial(
            compile,
            backend=backend,
            mode=mode,
            fullgraph=fullgraph,
            dynamic=dynamic,
            options=options,
            disable=disable,
            freeze=freeze,
            verbose=verbose,
        )
    if not callable(model):
        raise CompileError(
            "MC002",
            f"cannot compile {type(model).__name__!r}: it is not callable",
            remedy="Pass an nn.Module, a function, a method or a lambda.",
        )
    if backend not in BACKENDS and backend in backends():
        return torch.compile(
            model, backend=backend, mode=mode, fullgraph=fullgraph, dynamic=dynamic
        )
    made = Options.of(
        options,
        backend=backend,
        mode=mode,
        fullgraph=fullgraph,
        disable=disable,
        verbose=verbose,
    )
    return Compiled(model, made)


def compile_captured(captured: Captured, options: Options | None = None) -> Build:
    """The second half alone: for graphs that somebody else captured (see capture.dynamo)."""
    return build(captured, options or Options.of())


def explain(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Stages:
    """Compile `model` for these arguments and return its stages; str() is a one-screen summary.

    Keyword arguments named like fields of `Options` choose how; all others go to the model.
    """
    from dataclasses import fields

    from minicompile.compiled import Compiled

    names = {f.name for f in fields(Options)}
    chosen = {k: kwargs.pop(k) for k in list(kwargs) if k in names}
    return Compiled(model, Options.of(chosen)).prepare(*args, **kwargs).stages


def without(options: Options, *names: str) -> Options:
    """The same options with these passes switched off, too."""
    return replace(options, disable=(*options.disable, *names)).checked()
