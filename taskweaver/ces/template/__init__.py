"""Templates: sleeping processes from which kernels start."""
