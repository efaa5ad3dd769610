"""Source -> machine code: write the module to a file, import it, compile its kernels and hosts."""

from __future__ import annotations

import importlib.util
import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from minicompile.codegen.source import Source
from minicompile.errors import CompileError
from minicompile.runtime import cache

logger = logging.getLogger("minicompile.runtime")
_lock = threading.RLock()
_built: dict[str, Native] = {}


@dataclass(frozen=True)
class Native:
    """A built module: the native entry point of each host function, and where the text lies.

    An entry point takes addresses (int) and returns the number of a failed check, or 0.
    """

    source: Source
    file: Path
    hosts: dict[str, Callable[..., int]]
    module: ModuleType
    seconds: float
    cached: bool  # did every function come from the cache?

    def llvm(self, kernel: str) -> str:
        """The optimised LLVM IR of a kernel. Compiles it again if it came from the cache."""
        return _inspect(self, kernel, "inspect_llvm")

    def assembly(self, kernel: str) -> str:
        """The machine code of a kernel as assembly. Compiles it again if it came from the cache."""
        return _inspect(self, kernel, "inspect_asm")


def build(
    source: Source, cache_dir: str | Path | None = None, use_cache: bool = True
) -> Native:
    """Compile a generated module.

    cache_dir  the folder for modules and machine code; default: the user's cache directory
    use_cache  False: compile afresh and keep nothing
    Raises CompileError MC040, with the text around, if Numba refuses a function.
    """
    name = cache.module_name(source.text)
    with _lock:
        if name not in _built:
            _built[name] = _build(source, name, Path(cache_dir) if cache_dir else None, use_cache)
        return _built[name]


def _build(source: Source, name: str, cache_dir: Path | None, use_cache: bool) -> Native:
    start = time.perf_counter()
    file, lasting = cache.place(name, source.text, cache_dir)
    module = _import(name, file)
    for kernel in source.kernels:
        _compile(getattr(module, kernel.name), source, lasting and use_cache)
    hosts = {
        s.name: _compile(getattr(module, s.name), source, lasting and use_cache)
        for s in source.segments
    }
    seconds = time.perf_counter() - start
    logger.info("built %s in %.2f s: %s", name, seconds, file)
    functions = [getattr(module, f.name) for f in (*source.kernels, *source.segments)]
    return Native(source, file, hosts, module, seconds, all(f.cached for f in functions))


def _import(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Numba looks globals up by module name
    spec.loader.exec_module(module)
    return module


def _compile(function: Any, source: Source, use_cache: bool) -> Any:
    from numba.core.errors import NumbaError

    start = time.perf_counter()
    try:
        result = function.compile(use_cache)
    except NumbaError as e:
        raise _error(function.name, source, e) from e
    logger.debug("%s: %.0f ms", function.name, 1e3 * (time.perf_counter() - start))
    return result


def _error(name: str, source: Source, e: Exception) -> CompileError:
    """MC040: what Numba said, and the text of the function it said it about."""
    line = getattr(getattr(e, "loc", None), "line", 0)
    if line:
        around = source.lines[max(line - 6, 0) : line + 5]
        context = "\n".join(x.text for x in around)
    else:
        context = source.kernel_text(name) if any(k.name == name for k in source.kernels) else ""
    message = str(e).strip().splitlines()
    return CompileError(
        "MC040",
        f"Numba could not compile {name}: {message[0] if message else type(e).__name__}",
        where=f"line {line} of the generated module" if line else "",
        context=context,
        remedy="This is a fault of minicompile; please report it with the text above.",
    )


def _inspect(native: Native, kernel: str, what: str) -> str:
    function = getattr(native.module, kernel)
    found: dict[Any, str] = getattr(function.dispatcher, what)()
    return next(iter(found.values()))
