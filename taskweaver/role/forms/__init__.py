"""The forms of a model's reply: native tool calls, JSON, and fenced text."""
