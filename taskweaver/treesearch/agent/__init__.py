"""A model's part in a run: prompts, questions, replies, and descriptions of nodes."""
