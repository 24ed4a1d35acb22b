"""Kernels of another machine, by the kernel API of a server there."""
