"""Jupyter: clients join a session's kernel; notebooks get kernels and answers."""
