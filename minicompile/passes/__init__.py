"""Passes over the Graph IR: functionalize, decompose, fold, simplify, cse, dce, fuse; and the manager that runs them.

Importing this package registers them all. Read in this order: base, changes, manager, then a pass each.
"""

from minicompile.passes import cse, dce, decompose, fold, functionalize, fuse, simplify  # noqa: F401
