"""Secret keys that are kept in files."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

KEY_BYTES = 32


def kept_key(file: Path) -> bytes:
    """Return the key in a file, which is made, for its owner alone, if there is none.

    Raises:
        OSError: If the file cannot be read or made.
    """
    with suppress(FileNotFoundError):
        return file.read_bytes()
    key = secrets.token_bytes(KEY_BYTES)
    partial = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial.touch(0o600)
    try:
        partial.write_bytes(key)
        os.link(partial, file)  # whole or not at all, also when two processes begin at once
    except FileExistsError:
        return file.read_bytes()
    finally:
        partial.unlink()
    return key
