"""Branches of a session: the parts of each, and the turns that are played on them."""
