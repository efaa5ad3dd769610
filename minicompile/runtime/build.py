"""Source -> machine code in this process.

Each function of the generated module has machine code of its own, kept under a hash of its text.  If
all of it is in the cache, the module is not even imported, nor is Numba.  What is missing is compiled
by Numba from the module's file, so errors and tracebacks point to text that can be read.

Measured on a 2-core EPYC (tests/runtime/measure.py and the zoo's gpt): 0.1-0.5 s to compile a kernel with
Numba, 0.5 ms to load one; gpt with 10 kernels 3-4 s the first time, 0.02 s from the cache. With 24
layers it has the same kernels; its host of 780 lines takes 0.2 s.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from minicompile.codegen.host_compiler import compile_host
from minicompile.codegen.source import Source
from minicompile.errors import CompileError
from minicompile.runtime import objects, threads
from minicompile.runtime.cache import Cache, key, machine_key

logger = logging.getLogger("minicompile.runtime")
_lock = threading.RLock()
_addresses: dict[str, int] = {}  # machine code that is in this process, by key
_modules: dict[str, ModuleType] = {}


@dataclass(frozen=True)
class Native:
    """A built module.

    hosts     host name -> Python function; takes addresses, returns the number of a failed check or 0
    file      the generated module
    compiled  names of the functions that Numba compiled now; the others came from the cache
    """

    source: Source
    file: Path
    hosts: dict[str, Callable[..., int]]
    compiled: tuple[str, ...]
    seconds: float

    @property
    def cached(self) -> bool:
        return not self.compiled

    def llvm(self, kernel: str) -> str:
        """The optimised LLVM IR of a kernel (Numba compiles it again)."""
        text: str = getattr(_import(self.file), kernel).llvm()
        return text

    def assembly(self, kernel: str) -> str:
        """The assembly of a kernel (Numba compiles it again)."""
        text: str = getattr(_import(self.file), kernel).assembly()
        return text


def build(source: Source, cache_dir: str | Path | None = None, use_cache: bool = True) -> Native:
    """Compile a generated module, as far as its machine code is not in the cache.

    cache_dir  the folder for modules and machine code; default: the user's cache directory
    use_cache  False: compile afresh and keep no machine code
    Raises CompileError MC040, with the text around, if Numba refuses a function.
    """
    start = time.perf_counter()
    with _lock:
        builder = _Builder(source, Cache(Path(cache_dir) if cache_dir else None), use_cache)
        hosts = builder.build()
    seconds = time.perf_counter() - start
    made = tuple(builder.compiled)
    logger.info("built %s in %.2f s, %d functions compiled", builder.file, seconds, len(made))
    return Native(source, builder.file, hosts, made, seconds)


@dataclass
class _Builder:
    source: Source
    cache: Cache
    use_cache: bool
    compiled: list[str] = field(default_factory=list)

    def build(self) -> dict[str, Callable[..., int]]:
        self.file = self.cache.module(key(self.source.text), self.source.text)
        self.symbols = {k.name: self._kernel(k.name) for k in self.source.kernels}
        threads.available()
        return {s.name: self._host(s.name, len(s.buffers) + 3) for s in self.source.segments}

    def _kernel(self, name: str) -> str:
        """The symbol under which the kernel's machine code is now in this process."""
        text = re.sub(rf"^def {name}\(", "def kernel(", self.source.function_text(name), flags=re.M)
        symbol = key(machine_key(), text)
        objects.define(symbol, self._address(symbol, lambda: self._compile(name)))
        return symbol

    def _host(self, name: str, arguments: int) -> Callable[..., int]:
        calls = " ".join(f"{k}={symbol}" for k, symbol in self.symbols.items())
        text = self.source.function_text(name)
        name_of_code = key(machine_key(), text, calls)
        address = self._address(name_of_code, lambda: (name, self._compile_host(text)))
        return objects.python_function(address, arguments, name)

    def _compile_host(self, text: str) -> bytes:
        return compile_host(text, self.symbols, objects.machine())

    def _address(self, name_of_code: str, make: Callable[[], tuple[str, bytes]]) -> int:
        """Machine code from this process, from the cache, or made now: (function, object file)."""
        if name_of_code not in _addresses:
            found = self.cache.code(name_of_code) if self.use_cache else None
            symbol, data = found or make()
            if self.use_cache and found is None:
                self.cache.keep(name_of_code, symbol, data)
            _addresses[name_of_code] = objects.load(data, symbol)
        return _addresses[name_of_code]

    def _compile(self, function: str) -> tuple[str, bytes]:
        from numba.core.errors import NumbaError

        start = time.perf_counter()
        module = _import(self.file)
        try:
            code = getattr(module, function).compile()
        except NumbaError as e:
            raise _error(function, self.source, e) from e
        self.compiled.append(function)
        logger.debug("%s: %.0f ms", function, 1e3 * (time.perf_counter() - start))
        name: str = code.name
        data: bytes = code.data
        return name, data


def _import(file: Path) -> ModuleType:
    """The generated module, imported once."""
    name = file.stem
    if name not in _modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # Numba looks globals up by module name
        spec.loader.exec_module(module)
        _modules[name] = module
    return _modules[name]


def _error(name: str, source: Source, e: Any) -> CompileError:
    """MC040: what Numba said, and the text of the function it said it about."""
    line = getattr(getattr(e, "loc", None), "line", 0)
    if line:
        around = source.lines[max(line - 6, 0) : line + 5]
        context = "\n".join(x.text for x in around)
    else:
        context = source.function_text(name)
    message = str(e).strip().splitlines()
    return CompileError(
        "MC040",
        f"Numba could not compile {name}: {message[0] if message else type(e).__name__}",
        where=f"line {line} of the generated module" if line else "",
        context=context,
        remedy="This is a fault of minicompile; please report it with the text above.",
    )
