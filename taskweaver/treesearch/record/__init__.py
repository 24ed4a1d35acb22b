"""A run on disk: its folder, log, state and configuration, and statistics of its nodes."""
