"""Messages read as a whole: code, SQL, arithmetic, answers to a question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taskweaver.analyst.language.lexicon import LEXICON
from taskweaver.analyst.language.names import name_words, singular
from taskweaver.analyst.readings import (
    Calculation,
    FileListing,
    Python,
    Reading,
    Sql,
    Unclear,
)
from taskweaver.memory.suggestions import Suggestion, chosen

_CODE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)```", re.DOTALL)
_RUN = re.compile(
    r"\b(?:run|execute)\b[^:\n]{0,40}\b(?:code|python)\b[^:\n]{0,20}:\s*(.+)", re.DOTALL | re.I
)
_SQL = re.compile(r"\b((?:select|with)\b.+?\bfrom\b.+)", re.DOTALL | re.I)
_NUMBER = re.compile(
    r"(?:what(?:'s| is)|calculate|compute|how much is|evaluate)?"
    r"\s*([-\d.\s()+*/%^]*\d[-\d.\s()+*/%^]*)[?=.]?",
    re.I,
)
_DATABASES = (".db", ".sqlite", ".sqlite3")
_MAX_ARITHMETIC = 200


def special(text: str, files: Sequence[str]) -> Reading | None:
    """Return the reading of a request in a language of its own; None for other requests.

    `files` are those that it names, or those there are if it names none.
    """
    bare = text.strip()
    code = _CODE.search(bare) or _RUN.search(bare)
    if code and not re.search(r"\bsql\b", bare[: code.start(1)], re.I):
        return Python(code[1].strip())
    if (sql := _sql(bare, files)) is not None:
        return sql
    number = _NUMBER.fullmatch(bare) if len(bare) < _MAX_ARITHMETIC else None
    if number and re.search(r"\d\s*[-+*/%^]+\s*[\d(-]", number[1]):
        return Calculation(number[1].strip().replace("^", "**"))
    return FileListing() if _asks_for_files(bare) else None


def _sql(bare: str, files: Sequence[str]) -> Sql | None:
    match = _SQL.search(bare)
    is_sql = match and (
        re.search(r"\bsql\b|\bquery\b", bare, re.I) or bare.lower().startswith(("select", "with"))
    )
    databases = [name for name in files if name.lower().endswith(_DATABASES)]
    if not match or not is_sql or len(databases) != 1:
        return None
    query = match[1].strip("`\n ;")
    query = re.sub(r"```.*$", "", query, flags=re.DOTALL).strip()
    return Sql(databases[0], query)


def _asks_for_files(bare: str) -> bool:
    """Return whether nothing but the list of files is asked for."""
    words = re.findall(r"\w+(?:'\w+)?", bare.casefold())
    if not words or len(words) > 12:
        return False
    at, found = 0, False
    while at < len(words):
        for end in range(len(words), at, -1):
            senses = LEXICON.get(" ".join(words[at:end]), ())
            kinds = {sense.kind for sense in senses}
            if kinds & {"files", "filler", "which"} or (found and words[at] in ("which", "with")):
                found = found or "files" in kinds
                at = end
                break
        else:
            return False
    return found


_PLACES = {
    "first": 0, "1st": 0, "former": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3,
}  # fmt: skip
_LIGHT = frozenset(
    "the one please pls i mean meant it is its a of column file table use take in that would be "
    "for me by to from yes option number thanks value called named sheet data".split()
)


def chosen_option(text: str, pending: Unclear) -> str | None:
    """Return the option that an answer chooses; None if it chooses none."""
    plain = text.strip().strip("`'\"“”«».?! ")
    exact = [option for option in pending.options if option.casefold() == plain.casefold()]
    if len(exact) == 1:
        return exact[0]
    quoted = [option for option in pending.options if _names(text, option)]
    if len(quoted) == 1:
        return quoted[0] if _is_only(text, quoted[0]) else None
    words = [word for word in re.findall(r"\w+", plain.casefold()) if word not in _LIGHT]
    if len(words) == 1 and words[0] in _PLACES | {"last": 0, "latter": 0}:
        place = -1 if words[0] in ("last", "latter") else _PLACES[words[0]]
        return pending.options[place] if place < len(pending.options) else None
    parts = [
        option
        for option in pending.options
        if words
        and all(singular(word) in _words(option) or word in _words(option) for word in words)
    ]
    if len(parts) == 1:
        return parts[0]
    is_number = re.search(r"\d", plain) is not None
    numbered = chosen(plain, tuple(map(Suggestion, pending.options))) if is_number else ""
    return numbered or None


def _names(text: str, option: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE) is not None


def _is_only(text: str, option: str) -> bool:
    """Return whether an answer holds nothing but an option."""
    rest = re.sub(re.escape(option), " ", text, flags=re.IGNORECASE).casefold()
    return all(word in _LIGHT for word in re.findall(r"\w+", rest))


def _words(option: str) -> set[str]:
    return {*name_words(option), *re.findall(r"\w+", option.casefold())}
