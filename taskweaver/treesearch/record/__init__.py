"""A run on disk: its folder, log, state and configuration, and what is counted from its nodes."""
