"""Requests as typed values."""
