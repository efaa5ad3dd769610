"""Where generated modules and machine code are kept between processes.

    mc_<hash>.py   a generated module, to be read and to be found by tracebacks
    mc_<hash>.o    the machine code of one function; equal kernels of different models share one file

Names are hashes of everything the content depends on: the text, this package's code generator, the
versions of Numba and LLVM, the processor.  So a file never changes once it is there: two processes may
write it at once, and old machine code is never taken for new.  Files appear whole (os.replace) and
carry a checksum; one that is damaged counts as missing.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from minicompile import codegen

logger = logging.getLogger("minicompile.runtime")


def default_directory() -> Path:
    """The user's cache directory of this platform, plus ``minicompile``."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "minicompile"
    if sys.platform == "win32":
        return home / "AppData" / "Local" / "minicompile" / "Cache"
    return home / ".cache" / "minicompile"


@functools.cache
def compiler_key() -> str:
    """A hash of the code generator itself, for the names of modules."""
    digest = hashlib.sha256()
    for file in sorted(Path(codegen.__path__[0]).glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@functools.cache
def machine_key() -> str:
    """What machine code depends on beside its source: the processor and the versions of the tools."""
    import llvmlite.binding as binding

    versions = [version(package) for package in ("numba", "llvmlite")]
    chosen = [os.environ.get(name, "") for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    host = [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return " ".join([*versions, *chosen, *host])


def key(*texts: str) -> str:
    """``mc_`` and 20 hexadecimal digits: a hash of the texts and of the code generator."""
    digest = hashlib.sha256("\0".join((compiler_key(), *texts)).encode())
    return "mc_" + digest.hexdigest()[:20]


class Cache:
    """A folder of modules and machine code.

    directory  default: the user's cache directory.  One that cannot be written is replaced by a
               temporary one, for this process, with one warning.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or default_directory()

    def module(self, name: str, text: str) -> Path:
        """The file of a generated module, written now if it is not there yet."""
        file = self.directory / f"{name}.py"
        data = text.encode()
        if self._read(file) != data:
            file = self._write(file, data)
        return file

    def code(self, name: str) -> tuple[str, bytes] | None:
        """Machine code stored as `name`: (its function's symbol, object file); None if not there."""
        data = self._read(self.directory / f"{name}.o")
        if data is None or len(data) < _DIGEST:
            return None
        digest, content = data[:_DIGEST], data[_DIGEST:]
        if hashlib.sha256(content).digest() != digest:
            logger.warning("%s.o is damaged; compiling again", name)
            return None
        symbol, _, code = content.partition(b"\n")
        return symbol.decode(), code

    def keep(self, name: str, symbol: str, code: bytes) -> None:
        """Store machine code under `name`."""
        content = symbol.encode() + b"\n" + code
        self._write(self.directory / f"{name}.o", hashlib.sha256(content).digest() + content)

    def _read(self, file: Path) -> bytes | None:
        try:
            return file.read_bytes()
        except OSError:
            return None  # missing or unreadable: it will be made anew

    def _write(self, file: Path, data: bytes) -> Path:
        try:
            return _write_whole(file, data)
        except OSError as e:
            _warn_once(str(self.directory), e.strerror or str(e))
            self.directory = _temporary()
            return _write_whole(self.directory / file.name, data)


_DIGEST = hashlib.sha256().digest_size


def _write_whole(file: Path, data: bytes) -> Path:
    """Readers see the whole file or none."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.stem, suffix=".tmp")
    with os.fdopen(handle, "wb") as f:
        f.write(data)
    os.replace(temporary, file)
    return file


@functools.cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="minicompile-"))


@functools.cache
def _warn_once(folder: str, reason: str) -> None:
    logger.warning("no cache of compiled code: cannot write to %s (%s)", folder, reason)
