"""The source of a command's download, for logs: the usual forms are read, no shell is parsed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

# The part of a command after which another begins.
_SEPARATORS = {"&&", "||", ";", "|", "&"}
_URL = re.compile(r"(?:https?|ftp|file|ssh|git)://\S+|git@[\w.-]+:\S+")
_TARGETS = {"curl": {"-o", "--output"}, "wget": {"-O", "--output-document"}}
_FOLDERS = {"curl": {"--output-dir"}, "wget": {"-P", "--directory-prefix"}}


def extract_download_info(command: str) -> dict[str, str] | None:
    """Return the download of a command: ``tool`` (curl, wget or git), ``url`` and ``dest``.

    ``dest`` is as the command names it, or the name the tool derives from the address. For the
    first download in the command; None when there is none.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # half of a quote
        return None
    for part in _parts(words):
        for n, word in enumerate(part):
            tool = word.rpartition("/")[2]
            if tool in _TARGETS or (tool == "git" and "clone" in part[n + 1 :]):
                found = _download(tool, part[n + 1 :])
                if found is not None:
                    return found
    return None


def _parts(words: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word in _SEPARATORS:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _download(tool: str, words: list[str]) -> dict[str, str] | None:
    places = [n for n, word in enumerate(words) if _URL.fullmatch(word)]
    if not places:
        return None
    url = words[places[0]]
    name = re.sub(r"[?#].*", "", url).rstrip("/").rpartition("/")[2]
    if tool == "git":
        after = [word for word in words[places[0] + 1 :] if not word.startswith("-")]
        return {"tool": tool, "url": url, "dest": after[0] if after else name.removesuffix(".git")}
    named = _option(words, _TARGETS[tool]) or _option(words, {">", ">>"})
    folder = _option(words, _FOLDERS[tool])
    if named is None and tool == "curl" and not _keeps_name(words):
        return {"tool": tool, "url": url, "dest": ""}  # it goes to the standard output
    dest = named if named is not None else name
    return {"tool": tool, "url": url, "dest": f"{folder.rstrip('/')}/{dest}" if folder else dest}


def _keeps_name(words: list[str]) -> bool:
    return any(
        word == "--remote-name" or (re.fullmatch(r"-\w*O\w*", word) is not None) for word in words
    )


def _option(words: list[str], names: set[str]) -> str | None:
    """Return the value of an option, as in ``-o x``, ``-sLo x``, ``--output=x``."""
    letters = "".join(name[1] for name in names if len(name) == 2)
    for word, following in zip(words, [*words[1:], None], strict=True):
        name, equals, value = word.partition("=")
        if equals and name in names:
            return value
        if word in names or re.fullmatch(f"-[A-Za-z]*[{letters or '-'}]", word):
            return following
    return None
