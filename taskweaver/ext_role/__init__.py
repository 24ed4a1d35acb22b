"""Further roles: named in ``session.roles`` they take part, else they cost nothing."""
