"""Branches of a session: what forks, how a kernel gets its variables, the turns of the roles."""
