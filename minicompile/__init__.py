"""minicompile: a readable reference compiler for PyTorch models.

import minicompile as mc
f = mc.compile(model)           # or @mc.compile
y = f(x)
print(f.stages["fuse"])         # every stage prints, draws and runs
"""

from minicompile.compile import compile, explain
from minicompile.errors import CompileError
from minicompile.options import Options

__version__ = "0.1.0"
__all__ = ["CompileError", "Options", "compile", "explain"]
