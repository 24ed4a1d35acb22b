"""Evidence in files and columns for the form of their contents."""
