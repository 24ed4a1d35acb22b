"""Conditions on rows: values, flags, comparisons and times."""
