"""Vectors of texts: a table that comes with the package, or a configured embedding model."""
