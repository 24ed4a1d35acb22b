"""Evaluation: cases asked of a model, checked by program where possible, and compared."""
