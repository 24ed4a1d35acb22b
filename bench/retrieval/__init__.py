"""Labelled questions for retrieval in five languages, and the script of the table of vectors."""
