"""Phrases: the parts of a request, and the cheapest ways to cover its words with them."""
