"""The Agent Client Protocol over standard input and output: editors ask, and show the work."""
