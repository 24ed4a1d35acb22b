"""Rescue of damaged files, and new files from logs."""
