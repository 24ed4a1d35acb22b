"""Readings as pandas code."""
