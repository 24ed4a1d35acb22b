"""Jupyter: clients join a session's kernel. Notebooks get kernels and answers."""
