"""Responses, the protocol in which OpenAI's models reason beside tools."""
