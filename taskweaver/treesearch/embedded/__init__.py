"""Models of our own, by rules, for ideas they know: a search that needs neither network nor key."""
