"""Kinds of models: behind an endpoint, a function, a file of recordings, a mock."""
