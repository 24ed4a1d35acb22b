"""Conditions under which a running kernel can be forked, and the rest of pools before a fork."""
