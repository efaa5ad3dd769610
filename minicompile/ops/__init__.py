"""The op registry: the single source of truth about what every operation means.

Importing this package fills the registry. Adding an op touches one place: one entry in one of these
files.  Everything else (lowering, code generators, verifier, parser, tests, docs, coverage) is derived.
"""

from minicompile.ops import aten, creation, elementwise, gather, layout, reduction  # noqa: F401
