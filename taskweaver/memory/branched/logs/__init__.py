"""Operation logs: lines of public calls, and one line per row."""
