"""The kernel API: the routes of the original's execution server, and further routes."""
