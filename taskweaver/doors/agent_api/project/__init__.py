"""The project of the server: checks of what works, and settings."""
