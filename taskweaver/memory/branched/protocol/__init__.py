"""Exchange with a model: rendering, blocks, updates, and their audit trail."""
