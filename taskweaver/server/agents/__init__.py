"""Sessions of the server's users: their messages, their events, and what they may use."""
