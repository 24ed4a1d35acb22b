"""Commands on conversations: chats, scripts, replays and stored sessions."""
