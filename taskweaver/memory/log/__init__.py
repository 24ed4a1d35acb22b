"""The log of a conversation: its protocol, and the one on a branch of a memory file."""
