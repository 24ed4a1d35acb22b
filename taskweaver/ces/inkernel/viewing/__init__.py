"""Views of variables and pictures for a client: pages of tables, sizes, smaller copies."""
