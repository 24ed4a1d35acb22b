"""Plugins and host functions in the kernel."""
