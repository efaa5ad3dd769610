"""Capture: from a Python model to a pure graph at the ATen level.

tracer records, functionalize makes pure, guards say for which calls the record holds.
"""

from minicompile.capture.captured import Captured, flatten
from minicompile.capture.functionalize import Functionalize
from minicompile.capture.tracer import capture

__all__ = ["Captured", "Functionalize", "capture", "flatten"]
