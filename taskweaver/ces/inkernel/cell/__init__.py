"""A cell in the kernel: output, displays, artifacts and report."""
