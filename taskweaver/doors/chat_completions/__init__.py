"""OpenAI-compatible routes: chat front ends and programs ask as if they asked a model."""
