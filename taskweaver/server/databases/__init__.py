"""The databases of the server: SQLite files, or one PostgreSQL database for several servers."""
