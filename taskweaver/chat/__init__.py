"""The chat, under the import path programs of the original use."""
