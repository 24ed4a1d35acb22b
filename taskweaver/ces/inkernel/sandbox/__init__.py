"""A process in a sandbox: entry, loss of rights, trial of the walls, and the bridge out."""
