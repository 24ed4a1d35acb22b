"""Requests in other words: whole requests that mean the same.

They are tried only where a request has no reading of its own, and count only if the other
request is understood without a rest: a wording never changes an answer that there is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import count
from pathlib import PurePosixPath

_FILE = files(__package__).joinpath("language", "wordings.txt")
_POLITE = r"(?:(?:please|bitte|and|und|then|dann|now|jetzt|can you|kannst du|mir|me) )*"
_IT = (
    r"(?:(?:bitte|please|mal|that|this|it|them|these|all|das|es|dies|ergebnis"
    r"|(?:(?:the|this|these|die|das|den|diese[ns]?) )?(?:results?|table|answer|output|list|rows"
    r"|data|tabelle|ergebnis(?:se)?|liste|daten|zeilen)) )*"
)
_SAVES = r"(?:save|export|write|store|download|speicher[en]?|exportier[en]?)"
_TARGET = (
    r"(?:(?:as|to|into|in|als) )?(?:(?:an?|the|eine?) )?(?:(?P<kind>csv|excel|xlsx)\b)?[ -]?"
    r"(?:(?:file|datei|sheet|workbook)\b ?)?(?:(?:named|called|as|to|namens|als) )?"
    r"(?:[`'\"]?(?P<file>[\w./-]+\.(?:csv|xlsx))[`'\"]?)?"
)
_SAVE = (
    rf"{_POLITE}{_SAVES} {_POLITE}{_IT}{_TARGET}(?: ?(?:ab|bitte|please))?",
    rf"{_POLITE}{_IT}{_TARGET} ?(?:ab)?(?:speichern|exportieren)",
)
_END_OF_QUESTION = re.compile(r"[,.;?!]\s+|\s(?=and |und )")


@cache
def _wordings() -> dict[str, list[str]]:
    """Return patterns of whole requests, with requests that may mean the same.

    They are read at the first request that has no reading: importing this module reads none.
    """
    parts: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for line in _FILE.read_text("utf-8").splitlines()[2:]:
        said = re.sub(r"<([A-Z_-]+)>", lambda match: parts[match[1]], line)
        name, is_part, part = said.partition(" = ")
        if is_part:
            parts[name] = part
        else:
            pattern, _, requests = said.rpartition(" -> ")
            found[pattern] = requests.split(" | ")
    return found


def other_wordings(text: str) -> Iterator[str]:
    """Yield requests of the language that may mean the same, the likeliest first."""
    plain = " ".join(text.strip().rstrip("?.! ").split())
    low = plain.casefold()
    if len(low) != len(plain):
        return
    for pattern, templates in _wordings().items():
        match = re.fullmatch(pattern, low)
        if match is not None:  # as it was written: names keep their case
            parts = {
                name: plain[slice(*match.span(name))]
                for name, said in match.groupdict().items()
                if said is not None
            }
            yield from (_filled(one, parts) for one in templates if _needs(one) <= parts.keys())


def _needs(template: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", template))


def _filled(template: str, parts: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], template)


def file_to_save(text: str, taken: Collection[str] = ()) -> str:
    """Return the file that a request saves the last result to; empty for another request.

    A request that names none gets a name which is not among those `taken`.
    """
    said = " ".join(text.strip().rstrip("?.! ").split())
    found = (re.fullmatch(pattern, said, re.IGNORECASE) for pattern in _SAVE)
    match = next(filter(None, found), None)
    if match is None or not (match["kind"] or match["file"]):
        return ""
    if match["file"]:
        return PurePosixPath(match["file"]).name
    suffix = "csv" if match["kind"].casefold() == "csv" else "xlsx"
    names = (f"result{f'_{number}' * (number > 1)}.{suffix}" for number in count(1))
    return next(name for name in names if name not in taken)


def asked_and_saved(text: str, taken: Collection[str] = ()) -> tuple[str, str]:
    """Split a question from the wish to save its answer; both are empty for other requests."""
    for end in _END_OF_QUESTION.finditer(text):
        if file := file_to_save(text[end.end() :], taken):
            return text[: end.start()], file
    return "", ""
