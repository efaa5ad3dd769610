"""The other door: ``torch.compile(model, backend="minicompile")``.

TorchDynamo reads the user's bytecode, cuts it where Python decides by values, and hands each piece over as
an fx graph.  A piece comes through the same pipeline as any other model: an interpreter walks the fx
nodes under our recorder and says which line of the user's each one comes from.  Guards are Dynamo's.

The backend is an entry point of the group ``torch_dynamo_backends``; no import is needed to use it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from minicompile.capture.provenance import Provenance
from minicompile.capture.tracer import capture
from minicompile.errors import CompileError
from minicompile.ir.location import Loc

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_LIFTED = re.compile(r"^L_+(?P<name>.*?)_*$")


def backend(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile one fx graph for torch.compile; the result takes the graph's inputs.

    `options` are fields of minicompile.Options, `mode` one of its modes.  A graph that needs gradients
    runs as it is, with a warning; so does one that cannot be captured.
    """
    tensors = [x for x in example_inputs if isinstance(x, torch.Tensor)]
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        warnings.warn(
            "minicompile compiles no gradients yet: this graph runs eagerly; call it under "
            "torch.no_grad() or torch.inference_mode() to run compiled code",
            stacklevel=2,
        )
        return gm.forward
    return _PerShape(gm, dict(options or {}), mode)


class _PerShape:
    """One compiled variant per combination of shapes: Dynamo may pass symbolic sizes, we compile none."""

    def __init__(self, gm: fx.GraphModule, options: dict[str, Any], mode: str | None) -> None:
        self._gm, self._options = gm, options | ({"mode": mode} if mode else {})
        self._compiled: dict[Any, Callable[..., Any]] = {}
        self._symbolic = any(_is_symbolic(n.meta.get("example_value")) for n in gm.graph.nodes)

    def __call__(self, *args: Any) -> Any:
        key = _shapes(args) if self._symbolic else None
        run = self._compiled.get(key)
        if run is None:
            run = self._compiled[key] = self._compile(args)
        return run(*args)

    def _compile(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        from minicompile.capture.parameters import ParameterReader
        from minicompile.compile import compile_captured
        from minicompile.options import Options

        provenance = Provenance()
        try:
            captured = capture(_Located(self._gm, provenance), args, provenance=provenance)
        except CompileError as error:
            warnings.warn(f"a graph of torch.compile runs eagerly, because {error}", stacklevel=3)
            return self._gm.forward
        build = compile_captured(captured, Options.of(self._options))
        reader, inputs = ParameterReader(captured), captured.input_indices

        def run(*leaves: Any) -> Any:
            outputs = build.run([leaves[i] for i in inputs], reader)
            return captured.rebuild(outputs, leaves)

        return run


class _Located(fx.Interpreter):
    """Runs an fx graph node by node, telling the provenance where each node is from."""

    def __init__(self, gm: fx.GraphModule, provenance: Provenance) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self._provenance = provenance
        self.__name__ = "graph"
        names = [n.target for n in gm.graph.nodes if n.op == "placeholder"]
        self.argument_names = [lifted_name(str(n)) for n in names]

    def __call__(self, *args: Any) -> Any:
        return self.run(*args)

    def run_node(self, n: fx.Node) -> Any:
        self._provenance.override = location(n)
        return super().run_node(n)


def location(node: fx.Node) -> Loc:
    """The user's line of an fx node: the innermost frame of its stack trace; the module path."""
    frames = list(_FRAME.finditer(node.meta.get("stack_trace") or ""))
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    module = _module_path(stack[-1][0]) if stack else ""
    call = getattr(node.target, "__name__", str(node.target))
    if not frames:
        return Loc("<unknown>", 0, module=module, call=call)
    f = frames[-1]
    return Loc(f["file"], int(f["line"]), function=f["function"], module=module, call=call)


def _module_path(source: str) -> str:
    """``L['self']._modules['fc']`` or ``L['self'].fc`` -> ``fc``."""
    parts = re.findall(r"\['([^']+)'\]|\.(\w+)", source)
    names = [a or b for a, b in parts if (a or b) not in ("_modules", "__dict__")]
    return ".".join(names[1:])


def lifted_name(target: str) -> str:
    """``L_self_modules_fc_parameters_weight_`` -> ``fc_weight``; ``L_x_`` -> ``x``."""
    match = _LIFTED.match(target)
    name = match["name"] if match else target
    return re.sub(
        r"^(self|s|fn|mod)_+(?=modules_)|_?(modules|parameters|buffers)_", "_", name
    ).strip("_")


def _is_symbolic(example: Any) -> bool:
    if isinstance(example, torch.Tensor):
        return any(isinstance(n, torch.SymInt) for n in example.shape)
    return isinstance(example, torch.SymInt | torch.SymFloat)


def _shapes(args: Sequence[Any]) -> tuple[Any, ...]:
    return tuple((tuple(a.shape), a.stride()) if isinstance(a, torch.Tensor) else a for a in args)
