"""Role files, the classes they name, and the registry of both."""
