"""Command line. A project folder of None is looked for in the current folder and above it."""
