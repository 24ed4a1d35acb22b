"""The request language: words to phrases, phrases to readings."""
