"""Evidence in files and columns for the form of what they hold."""
