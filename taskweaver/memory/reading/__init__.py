"""Readings of rounds: the view of each role, and the cells that ran."""
