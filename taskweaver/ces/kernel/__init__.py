"""Kernels of sessions: requests, their outcome, restarts and forks."""
