"""Forms of data inside rounds: the check of an answer, notes of the session, files."""
