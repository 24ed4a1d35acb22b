"""Executors: where the jobs of a search run, on this machine or on others."""
