"""The page as a door of the server: its files, which need no token."""
