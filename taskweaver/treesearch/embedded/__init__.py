"""Models of our own, by rules: a search that needs neither network nor key."""
