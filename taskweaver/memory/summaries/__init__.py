"""Summaries of old rounds: when they are due, and the text, model and result of each."""
