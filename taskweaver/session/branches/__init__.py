"""Branches of a session: forks, kernels and turns; `long_memory` keeps facts of the user."""
