"""The download phase step by step: a loop of commands that a model chooses."""
