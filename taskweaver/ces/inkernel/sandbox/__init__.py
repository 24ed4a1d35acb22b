"""A process in a sandbox: entry, loss of rights, trial of the isolation, and the bridge out."""
