"""Conversations on branches: rounds, posts and their summaries."""
