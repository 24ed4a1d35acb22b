"""Sandboxes: the walls, the sessions in them, and the proxy to allowed hosts."""
