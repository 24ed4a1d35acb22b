"""The guards of all tests: no network, and no keys."""

from __future__ import annotations

import os
import socket

import pytest


def test_no_test_reaches_another_machine() -> None:
    with socket.socket() as one, pytest.raises(AssertionError, match="tried to reach"):
        one.connect(("192.0.2.1", 9))
    assert not [name for name in os.environ if name.startswith(("OPENAI_", "AZURE_"))]
