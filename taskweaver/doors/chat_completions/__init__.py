"""OpenAI-compatible routes: chat front ends and programs ask as they would ask a model."""
