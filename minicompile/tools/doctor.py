"""``minicompile doctor``: what this machine offers, and what is missing."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from minicompile.errors import CompileError
from minicompile.options import Options
from minicompile.tools.page import say, table
from minicompile.view import draw, drawing_program

Finding = tuple[str, str]  # what there is, and a problem with its remedy or ""


def command(arguments: argparse.Namespace) -> int:
    """Print one line for each finding; 1 if anything needs attention."""
    findings = {name: look() for name, look in LOOKS.items()}
    table(("", "found", "remedy"), [(name, *found) for name, found in findings.items()])
    problems = sum(bool(problem) for _, problem in findings.values())
    say("All is well." if not problems else f"{problems} to look at.")
    return 1 if problems else 0


def python() -> Finding:
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}", ""


def packages() -> Finding:
    names = ("minicompile", "torch", "numba", "llvmlite", "numpy", "graphviz-pure")
    return ", ".join(f"{name} {version(name)}" for name in names), ""


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def threads() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{torch.get_num_threads()} threads of PyTorch on {usable} usable cores", ""


def simd() -> Finding:
    bits, name = simd_width()
    problem = "" if bits >= 256 else "kernels work with 16 lanes: expect less speed here"
    return f"{bits} bits ({name}): {bits // 32} floats at once", problem


def simd_width() -> tuple[int, str]:
    """The width of vector registers in bits, and the name of the instruction set."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    for bits, name in ((512, "avx512f"), (256, "avx2"), (128, "neon"), (128, "sse2")):
        if features.get(name):
            return bits, name
    return 128, "baseline"


def drawing() -> Finding:
    program = drawing_program()
    if program is None:
        return "none", "pip install graphviz-pure"
    try:
        draw("digraph { a -> b }")
    except CompileError as error:
        return program, error.message
    return program, ""


def cuda() -> Finding:
    if not torch.cuda.is_available():
        return "no GPU that PyTorch can use (not needed)", ""
    major, minor = torch.cuda.get_device_capability()
    return f"{torch.cuda.get_device_name()}, compute capability {major}.{minor}", ""


def cache() -> Finding:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return str(folder), f"cannot be written ({error.strerror}): every process compiles anew"
    files = [f for f in folder.rglob("*") if f.is_file()]
    size = sum(f.stat().st_size for f in files) / 2**20
    return f"{folder}: {len(files)} files, {size:.1f} MB", ""


def cache_folder() -> Path:
    """Where generated modules and machine code are kept."""
    from minicompile.runtime.cache import default_directory

    return Path(Options().cache_dir or default_directory())


LOOKS: dict[str, Callable[[], Finding]] = {
    "python": python,
    "packages": packages,
    "threads": threads,
    "vector registers": simd,
    "drawing program": drawing,
    "CUDA": cuda,
    "cache": cache,
}
