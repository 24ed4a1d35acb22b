"""Takeover of databases of the original system."""
