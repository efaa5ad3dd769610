"""From graphs to loops: lower, merge, then the schedule (tile, vectorize, parallel) and buffers."""
