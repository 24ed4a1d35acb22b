"""Folders and files that foreign programs may change at the same time."""
