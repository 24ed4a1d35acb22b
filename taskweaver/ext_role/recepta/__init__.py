"""Recepta: a place for the Planner to think."""
