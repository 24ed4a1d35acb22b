"""Commands outside of kernels."""
