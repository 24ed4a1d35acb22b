"""Names of types that only have meaning in conversations."""

from __future__ import annotations

from typing import Literal

RoleName = str
RoundId = str
RoundState = Literal["created", "finished", "failed"]
SharedMemoryEntryType = str
SharedMemoryEntryScope = Literal["round", "conversation"]
