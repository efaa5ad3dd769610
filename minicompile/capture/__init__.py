"""Capture: from a Python model to a pure graph at the ATen level.

tracer records, functionalize makes pure, guards say for which calls the record holds.
"""

from minicompile.capture.captured import Captured, flatten
from minicompile.capture.functionalize import Functionalize
from minicompile.capture.guards import Guard, make_guard
from minicompile.capture.parameters import ParameterReader, ParametersChanged
from minicompile.capture.tracer import capture

__all__ = [
    "Captured",
    "Functionalize",
    "Guard",
    "ParameterReader",
    "ParametersChanged",
    "capture",
    "flatten",
    "make_guard",
]
