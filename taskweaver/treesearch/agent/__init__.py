"""A model's part in a run: questions and replies; `describe` shows attempts, `board` lessons."""
