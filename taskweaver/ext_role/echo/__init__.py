"""The Echo: repeats messages."""
