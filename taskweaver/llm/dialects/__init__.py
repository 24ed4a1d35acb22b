"""Protocols of model endpoints: a dialect turns requests into bodies, and replies into events."""
