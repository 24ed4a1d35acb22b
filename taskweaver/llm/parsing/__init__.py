"""Replies of models: from bytes of a stream to text, and from text to fields."""
