"""Readings and outcomes in words."""
