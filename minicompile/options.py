"""What a user may choose: backend, mode, passes, cache. Bad names are refused with the valid ones."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from minicompile.errors import CompileError, unknown_name

BACKENDS = ("cpu", "interpreter")
MODES = ("default", "reduce-overhead", "max-autotune")
MODE_ALIASES = {"reduce-all": "max-autotune"}
PIPELINE = (
    "functionalize,decompose,fold,simplify,cse,dce,fuse,lower,merge,tile,vectorize,parallel,buffers"
)
REQUIRED = ("functionalize", "decompose", "fuse", "lower", "buffers")


@dataclass(frozen=True)
class Options:
    """All choices of one compile.

    backend     "cpu": Numba code; "interpreter": run the Graph IR with PyTorch (slow, for comparison); any
                name torch.compile knows ("inductor", ...) is passed on to it by `compile`
    mode        "default", "reduce-overhead", "max-autotune" (alias "reduce-all"); today all three build
                the same code
    fullgraph   raise when the model cannot be captured whole, instead of running it eagerly
    pipeline    the passes as text: ``"functionalize,decompose,...,fuse{max_inputs=8},..."``
    disable     names of passes to leave out; those of `REQUIRED` cannot be
    verify      check the IR after every pass
    cache_dir   where generated modules and machine code go; None: the user's cache directory
    verbose     print one line per stage
    """

    backend: str = "cpu"
    mode: str = "default"
    fullgraph: bool = False
    pipeline: str = PIPELINE
    disable: tuple[str, ...] = ()
    verify: bool = True
    cache_dir: str | None = None
    verbose: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any] | None = None, **fixed: Any) -> Options:
        """Options from keywords, with the dictionary `options` on top. CompileError MC001 for bad names."""
        known = {f.name for f in fields(cls)}
        if not isinstance(options, Mapping | None):
            raise _wrong_kind("options", options, "a dictionary of names and values")
        extra = dict(options or {})
        for name in extra:
            if name not in known:
                raise unknown_name("option", name, sorted(known))
        made = replace(cls(), **{**fixed, **extra})
        made._check_kinds()
        mode = MODE_ALIASES.get(made.mode, made.mode)
        return replace(made, mode=mode, disable=tuple(made.disable)).checked()

    def _check_kinds(self) -> None:
        """CompileError MC002 for a value of the wrong type."""
        for f in fields(self):
            value = getattr(self, f.name)
            kinds, words = _KINDS[str(f.type)]
            if not isinstance(value, kinds):
                raise _wrong_kind(f.name, value, words)

    def checked(self) -> Options:
        if self.mode not in MODES:
            raise unknown_name("mode", self.mode, [*MODES, *MODE_ALIASES])
        if self.backend not in BACKENDS:
            raise unknown_name("backend", self.backend, backends())
        passes = re.sub(r"\{.*?\}", "", self.pipeline).replace(" ", "").split(",")
        missing = [name for name in REQUIRED if name not in passes]
        if missing and self.backend == "cpu":
            raise CompileError("MC002", f"the pipeline lacks {', '.join(missing)}")
        for name in self.disable:
            if name in REQUIRED:
                raise CompileError(
                    "MC001",
                    f"the pass {name!r} cannot be switched off: later stages need it",
                    remedy=f"These can: {', '.join(optional_passes())}.",
                )
            if name not in optional_passes():
                raise unknown_name("pass", name, optional_passes())
        return self


_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a string"),
    "bool": ((bool,), "True or False"),
    "tuple[str, ...]": ((tuple, list), "a tuple of names"),
    "str | None": ((str, os.PathLike, type(None)), "a path, or None"),
}


def _wrong_kind(name: str, value: object, words: str) -> CompileError:
    return CompileError("MC002", f"{name} should be {words}, not {value!r}")


def optional_passes() -> list[str]:
    """Names that `disable` accepts."""
    names = [p.split("{")[0] for p in PIPELINE.split(",")]
    return [n for n in names if n not in REQUIRED]


def backends() -> list[str]:
    """Our backends, then those of torch.compile that `compile` passes on."""
    import torch._dynamo

    others = [
        b
        for b in torch._dynamo.list_backends(exclude_tags=())
        if b not in (*BACKENDS, "minicompile")
    ]
    return [*BACKENDS, *others]
