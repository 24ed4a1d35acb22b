"""The operating system, this installation of the package, and work that is cancelled."""
