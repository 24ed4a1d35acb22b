"""Searches on invented landscapes: policies are compared without a model, and nothing is run."""
