"""The branched memory, bare SQLite and LangGraph's saver behind the same few operations."""
