"""The time that a test waits for what has to come."""

from __future__ import annotations

PATIENCE_S = 300.0
"""Longest wait, in seconds: on a busy machine, what takes a second takes a minute.

A test that hangs for longer is ended by pytest.
"""
