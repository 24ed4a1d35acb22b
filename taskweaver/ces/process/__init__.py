"""Processes of kernels: their start and end, their memory and their private folders."""
