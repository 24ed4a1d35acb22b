"""Columns, values and times that the words of a request refer to."""
