"""Live forks: `safety` decides by a table of libraries, `threads` and others find obstacles."""
