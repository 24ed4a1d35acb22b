"""Sources of a run and its final memory."""
