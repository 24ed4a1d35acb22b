"""inkernel."""
