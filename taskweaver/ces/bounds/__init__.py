"""Bounds on the resources of a session: measured, kept, and reported."""
