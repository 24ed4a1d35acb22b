"""The WebExplorer: a role that reads and works web pages in a real browser."""
