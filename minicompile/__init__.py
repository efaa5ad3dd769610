"""minicompile: a readable reference compiler for PyTorch models."""
