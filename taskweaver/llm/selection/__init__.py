"""Choice of a model: the configuration, servers on this machine, and the key each may get."""
