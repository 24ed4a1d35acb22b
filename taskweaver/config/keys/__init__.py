"""Configuration keys: types, defaults and meanings."""
