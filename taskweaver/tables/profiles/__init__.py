"""Profiles of tables, and first impressions of files."""
