"""A memory for agents that work for hours: core, recall and archival over one tree of branches."""
