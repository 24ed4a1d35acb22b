"""Sources of a run and the final memory."""
