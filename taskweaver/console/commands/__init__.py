"""Slash commands of a chat."""
