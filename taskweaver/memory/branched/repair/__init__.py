"""Rescue of damaged files."""
