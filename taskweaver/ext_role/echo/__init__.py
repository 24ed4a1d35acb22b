"""The Echo: says what it is told."""
