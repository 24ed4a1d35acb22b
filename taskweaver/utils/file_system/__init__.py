"""Folders and files that other programs may change at the same time."""
