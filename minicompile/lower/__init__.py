"""From graphs to loops: lower, merge, then the schedule (tile, vectorize, parallel) and buffers."""

from minicompile.lower import buffers, lower, merge, parallel, tile, vectorize  # noqa: F401
