"""One SQL statement over SQLite, DuckDB or PostgreSQL, read-only unless it is granted more."""
