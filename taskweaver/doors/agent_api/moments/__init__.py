"""Moments of branches over HTTP: as they were, and side by side."""
