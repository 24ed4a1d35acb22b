"""States of kernels at round ends, and their return into new kernels."""
