"""From loops to source, and the functions that the source calls.

    source             lines that know their origins, the writer, names
    numba_cpu          a program -> one Python module: kernels, then hosts
      kernel_printer     loops and statements       tiles        what lives in registers
      expressions        values, loads, conditions  addresses    indices and their step along the lanes
      stores             what is written
    host               the host functions' text; host_compiler turns it into machine code

The words of generated code are functions on Registers, which write LLVM code; Numba calls them:

    prelude            all of them, by the names that generated code uses
    register           values and addresses         numba_types  how Numba learns them
    vector_ops, vector_integer, vector_cast, vector_memory
    vector_math        polynomials: vector_exp, _log, _trig, _inverse, _hyperbolic; vector_libm for the rest
    functions          `@kernel`: Numba compiles a function to an object file
"""
