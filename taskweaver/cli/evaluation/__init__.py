"""``taskweaver eval``: cases asked of a model, and their table."""
