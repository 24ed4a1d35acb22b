"""Cases of an evaluation, and the files they are read from."""
