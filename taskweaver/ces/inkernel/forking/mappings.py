"""Memory mappings of this process, read once per request for a fork."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_LINE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ *(.*)$", re.MULTILINE)
_SHARED = re.compile(rb"^\S+ rw-s \S+ \S+ \S+ +(.+)$", re.MULTILINE)
_LIBRARY = re.compile(rb"^\S+ r-xp \S+ \S+ \S+ +(/.*/[^/\n]*\.so[^/\n]*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mapping:
    """One range of addresses.

    Attributes:
        start: First address.
        end: First address behind it.
        access: Permissions in the form of ``/proc/self/maps``, e.g. ``r-xp``.
        path: Mapped file; empty for anonymous memory.
    """

    start: int
    end: int
    access: str
    path: str


class Mappings:
    """A snapshot of ``/proc/self/maps``; each view is parsed when first used."""

    def __init__(self) -> None:
        self._text = Path("/proc/self/maps").read_bytes()

    def shared_for_writing(self) -> set[str]:
        """Return the files mapped so that a fork would share writes to them."""
        return set(map(_decoded, _SHARED.findall(self._text)))

    def libraries(self) -> set[str]:
        """Return the paths of the loaded shared libraries."""
        return set(map(_decoded, _LIBRARY.findall(self._text)))

    def at(self, address: int) -> Mapping | None:
        """Return the mapping that holds an address."""
        starts, all_of_them = self._index
        place = bisect_right(starts, address) - 1
        if place < 0 or address >= all_of_them[place].end:
            return None
        return all_of_them[place]

    @cached_property
    def _index(self) -> tuple[list[int], list[Mapping]]:
        found = [
            Mapping(int(start, 16), int(end, 16), access.decode("ascii"), _decoded(path))
            for start, end, access, path in _LINE.findall(self._text)
        ]
        return [mapping.start for mapping in found], found


def _decoded(path: bytes) -> str:
    return path.decode("utf-8", "replace")
