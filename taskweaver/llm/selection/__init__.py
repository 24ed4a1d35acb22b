"""Choice of a model: what is configured, what runs here, and whose key it gets."""
