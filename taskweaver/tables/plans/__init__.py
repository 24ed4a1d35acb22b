"""Plans of reading a table: as data, carried out, and as pandas code."""
