"""Words that no value may be named: they mean something else in IR text or in generated code.

Capture gives such a name a suffix (an argument called `load` becomes `load_2`); the verifier refuses it.
"""

from __future__ import annotations

from minicompile.ir.types import DTYPES

# Of the text: dtypes, constants, namespaces, forms.
TEXT_WORDS = frozenset({*DTYPES, "inf", "nan", "torch", "aten", "torch_ops", "strided", "arena"})

# Of generated code: what kernels, the host function and `forward` call or bind beside the registry's ops.
CODE_WORDS = frozenset(
    [
        "accumulate_add",
        "accumulate_and",
        "accumulate_max",
        "accumulate_min",
        "accumulate_mul",
        "accumulate_or",
        "address",
        "addresses",
        "alias",
        "annotations",
        "call_node",
        "code",
        "empty",
        "env",
        "error",
        "error_cell",
        "fail",
        "failed",
        "first_lanes",
        "fma",
        "fold_add",
        "fold_and",
        "fold_max",
        "fold_min",
        "fold_mul",
        "fold_or",
        "forward",
        "give",
        "hi",
        "host",
        "inputs",
        "kernel",
        "lane",
        "lane_index",
        "lanes_between",
        "lie",
        "lo",
        "load",
        "load_strided",
        "memory",
        "outside",
        "params",
        "part",
        "power",
        "range",
        "scratch",
        "splat",
        "store",
        "store_strided",
        "table",
        "take",
        "threads",
        "view",
        "write_back",
    ]
)

RESERVED = TEXT_WORDS | CODE_WORDS
