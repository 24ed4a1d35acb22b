"""Anthropic messages, the protocol of Claude's own endpoint and of those that speak it."""
