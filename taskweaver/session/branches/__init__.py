"""Branches of a session: what each consists of, and the turns that are played on them."""
