"""Composition of phrases into one reading, and the checks of it."""
