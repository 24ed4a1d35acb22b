"""A cell in the kernel: its output, displays, artifacts and report."""
