"""The two intermediate representations (Graph IR and Loop IR): data, text, verifier, interpreter.

Knows neither PyTorch models nor Numba.  Read in this order: types, location, graph, loop.
"""
