"""role."""
