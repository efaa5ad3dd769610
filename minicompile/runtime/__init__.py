"""Running programs: machine code and the calls of it.

build         a generated module -> machine code in this process, through the cache
cache         files of modules and machine code
objects       object files -> symbols and Python functions, with LLVM alone
executable    a built program as a function on tensors; `call` prints that function
threads       parallel kernels on PyTorch's OpenMP pool
"""
