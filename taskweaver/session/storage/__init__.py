"""Folders and files of sessions."""
