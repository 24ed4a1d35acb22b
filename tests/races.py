"""A process that swaps entries as fast as it can, as code in a sandbox may.

`RACES` sets how often each operation is tried beside it; `make long` does it 10,000 times.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TRIES = int(os.environ.get("RACES", "100"))
SECRET = b"outside only"
_SWAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
pairs = [(os.fsencode(a), os.fsencode(b)) for a, b in zip(sys.argv[1::2], sys.argv[2::2])]
print("ready", flush=True)
while os.getppid() == PARENT:
    for _ in range(500):
        for one, other in pairs:
            libc.renameat2(-100, one, -100, other, 2)  # exchange both
"""


@contextmanager
def swapping(*pairs: tuple[Path, Path]) -> Iterator[None]:
    """Exchange the entries of each pair, over and over, while the block runs."""
    code = _SWAP.replace("PARENT", str(os.getpid()))
    words = [str(path) for pair in pairs for path in pair]
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def state_of(folder: Path) -> dict[str, tuple[int, str]]:
    """Return everything in a folder, itself included, with modes and contents."""
    found = {".": (folder.lstat().st_mode, "")}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else ""
        found[str(path.relative_to(folder))] = (mode, content)
    return found
