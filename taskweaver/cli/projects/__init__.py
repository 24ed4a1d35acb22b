"""Commands on a project folder: its start, roles, plugins and state."""
