"""A session as it was at the ends of its rounds."""
