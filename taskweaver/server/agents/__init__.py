"""Sessions of the server's users: messages, events, and quotas."""
