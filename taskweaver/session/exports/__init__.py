"""Conversations as files that other programs use."""
