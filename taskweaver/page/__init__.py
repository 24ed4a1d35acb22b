"""The page: its files, and one conversation as a file with the same modules."""
