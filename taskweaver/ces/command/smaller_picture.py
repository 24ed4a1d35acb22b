"""Smaller copies of pictures, made by a command in a sandbox with limits of its own."""

from __future__ import annotations

import sys
from typing import BinaryIO

from taskweaver.ces.command.command import Command, CommandLimits, run_command
from taskweaver.ces.inkernel import smaller_image
from taskweaver.ces.policy import SandboxPolicy, Tier
from taskweaver.ces.process.homes import private_folder, remove_folder
from taskweaver.utils.file_system.safe_fs import Folder, copy_content
from taskweaver.utils.images import image_header

MOST_READ_BYTES = 256 << 20
"""Size of the largest picture that is read."""
_SOURCE, _TARGET = "picture", "smaller"
_LIMITS = CommandLimits(
    timeout_s=30.0,
    memory_bytes=1 << 30,
    process_limit=64,
    file_bytes=64 << 20,
    open_files=256,
    cpu_s=30,
    output_bytes=4 << 10,
    tail_bytes=4 << 10,
)


class PictureNotMade(Exception):
    """A smaller copy cannot be made; its text says why."""


def smaller_picture(
    source: BinaryIO, tier: Tier | None, most_pixels: int, most_bytes: int
) -> bytes:
    """Return a copy of a picture within bounds, PNG or JPEG.

    Args:
        source: The picture; the caller has looked at its size.
        tier: Tier of the sandbox that decodes it; None for none.
        most_pixels: Longest side of the copy.
        most_bytes: Size of the copy.

    Raises:
        PictureNotMade: If it is no picture, or its copy takes too much time or memory.
        OSError: If there is no room for it.
    """
    folder = private_folder()
    try:
        with (folder / _SOURCE).open("xb") as copy:
            copy_content(source, copy, MOST_READ_BYTES)
        words = (sys.executable, "-m", smaller_image.__name__, _SOURCE, _TARGET)
        sandbox = None if tier is None else SandboxPolicy(tier=tier)
        bounds = (str(most_pixels), str(most_bytes))
        result = run_command(Command((*words, *bounds), folder, sandbox=sandbox, limits=_LIMITS))
        if not result.is_ok:
            lines = result.tail.strip().splitlines()
            said = f": {lines[-1].rstrip('.'):.200}" if lines else ""
            raise PictureNotMade(f"The picture cannot be made smaller, {result.ending}{said}.")
        with Folder.at(folder) as own, own.open_file(_TARGET) as file:
            content = file.read(most_bytes + 1)
    finally:
        remove_folder(folder)
    header = image_header(content)
    is_within = header is not None and max(header.width, header.height) <= most_pixels
    if not is_within or len(content) > most_bytes:
        raise PictureNotMade("The picture cannot be made smaller.")
    return content
