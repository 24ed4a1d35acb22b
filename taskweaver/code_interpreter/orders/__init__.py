"""Orders in words: their cells one after the other, their prompts, and the report at their end."""
