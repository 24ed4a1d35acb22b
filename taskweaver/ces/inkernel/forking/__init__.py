"""Live forks: `safety` decides, `libraries` has the table, `threads` and others find obstacles."""
