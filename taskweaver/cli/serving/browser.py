"""The browser of the person who started the server."""

from __future__ import annotations

import html
import os
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from taskweaver.server.accounts import server_folder
from taskweaver.utils.files import write_text


def open_page(address: str, workspace: Path) -> Callable[[], None]:
    """Open the page in a browser; return a function that removes what was written for that.

    The browser gets the name of a private file that leads to the address: the arguments of its
    process, which other users of the machine can list, have no token.
    """
    folder = server_folder(workspace)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"open-{os.getpid()}.html"
    target = html.escape(f"0; url={address}", quote=True)
    write_text(file, f'<!doctype html><meta http-equiv="refresh" content="{target}">', mode=0o600)

    def remove() -> None:
        with suppress(OSError):  # it may be gone with its folder
            file.unlink()

    try:
        is_open = webbrowser.open(file.as_uri())
    except webbrowser.Error:
        is_open = False
    if not is_open:
        sys.stderr.write("taskweaver: no browser could be opened; open the address in one.\n")
    return remove
