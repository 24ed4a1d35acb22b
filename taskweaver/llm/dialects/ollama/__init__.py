"""Ollama's own protocol, ``/api/chat``."""
