"""The check of an answer: each number in it is found in an outcome of the session, or named."""
