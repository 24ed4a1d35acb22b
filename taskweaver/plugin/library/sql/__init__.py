"""One SQL statement over SQLite, DuckDB or PostgreSQL, read-only unless more is granted."""
