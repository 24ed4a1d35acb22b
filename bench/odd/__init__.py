"""Odd forms of a model's reply as data, a model that writes them, and rounds with it."""
