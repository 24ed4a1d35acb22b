"""Checks of a case: on answers, code and files; each is met or names its problem."""
