"""Reading of a request against the tables it may be about, alone or as a change of the last one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from taskweaver.analyst.language.compose import compose
from taskweaver.analyst.language.cover import covers
from taskweaver.analyst.language.follow_ups import revise
from taskweaver.analyst.language.lexicon import (
    LEXICON,
    Token,
    is_unspaced,
    literal_spans,
    tokenize,
)
from taskweaver.analyst.language.parser import Words
from taskweaver.analyst.language.parts import UnclearError, UnfitError
from taskweaver.analyst.language.scope import DataScope
from taskweaver.analyst.readings import (
    NotUnderstood,
    Outcome,
    Reading,
    Unclear,
    Understood,
)
from taskweaver.tables.files.mentions import Mention

MAX_WORDS = 200
_CLOSE = 0.25


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """Outcome of reading a request against one scope, and its cost."""

    scope: DataScope
    outcome: Understood | Unclear | NotUnderstood
    cost: float
    words: Words = field(repr=False)


def read(
    text: str,
    scope: DataScope,
    mentions: Sequence[Mention],
    previous: Reading | None = None,
) -> ReadingResult:
    """Read a request against a scope; of a previous reading, the request changes a part."""
    words = Words(text, _tokens(text, scope, mentions), scope)
    unfit: UnfitError | None = None
    for cost, atoms in covers(words):
        try:
            reading = revise(words, atoms, previous) if previous else compose(words, atoms)
            return ReadingResult(scope, reading, cost, words)
        except UnclearError as error:
            return ReadingResult(scope, error.unclear, cost, words)
        except UnfitError as error:
            unfit = unfit or error
    found = unfit or UnfitError(text)
    outcome = NotUnderstood(found.words, found.reason)
    return ReadingResult(
        scope, outcome, 1000.0 + len(found.words) - 0.5 * bool(found.reason), words
    )


def _tokens(text: str, scope: DataScope, mentions: Sequence[Mention]) -> list[Token]:
    literals = literal_spans(text, scope.literals)
    files = [(mention.start, mention.end) for mention in mentions if mention.is_certain]
    nouns = [
        (mention.start, mention.end)
        for mention in mentions
        if not mention.is_certain and " " in text[mention.start : mention.end]
    ]
    known = (*LEXICON, *scope.literals) if is_unspaced(text) else ()
    tokens = tokenize(text, literals, [*files, *nouns], known)
    return [part for token in tokens for part in _parts(token, scope)]


_PREFIXED = re.compile(
    r"(durchschnitts|gesamt|höchst|mindest|maximal|minimal)(?!es?n?$)\w{3,}", re.I
)


def _parts(token: Token, scope: DataScope) -> list[Token]:
    """Return the two parts of a compound like ``Durchschnittsgehalt``; else the token."""
    match = _PREFIXED.fullmatch(token.text) if token.kind == "word" else None
    if match is None or token.lower in LEXICON or scope.column((token.lower,), token.text):
        return [token]
    middle = token.start + match.end(1)
    first = replace(token, text=match[1], end=middle)
    return [first, replace(token, text=token.text[match.end(1) :], start=middle)]


def best(
    results: Sequence[ReadingResult], preferred: Sequence[DataScope]
) -> Outcome | ReadingResult:
    """Return the best of several results; a question if two are equally good."""
    good = [result for result in results if isinstance(result.outcome, Understood)]
    liked = [result for result in good if result.scope in preferred and not _unused(result)]
    good = sorted(liked or good, key=lambda result: result.cost)
    if good:
        close = [result for result in good if result.cost <= good[0].cost + _CLOSE]
        most = max(map(_named, close))  # a column of this name, and not a part of one
        close = [result for result in close if _named(result) == most]
        return close[0] if len(close) == 1 else _which_table([result.scope for result in close])
    unclear = [result for result in results if isinstance(result.outcome, Unclear)]
    if unclear:
        liked = [result for result in unclear if result.scope in preferred]
        return min(liked or unclear, key=lambda result: result.cost)
    return min(results, key=lambda result: result.cost)


def _named(result: ReadingResult) -> int:
    """Return the number of words that are names of columns."""
    words = result.words
    found = (any(ref.distance < 2 for _, ref, _ in words.columns(at)) for at in range(words.size))
    return sum(found)


def _unused(result: ReadingResult) -> tuple[str, ...]:
    """Return the unused words of a reading: with some, it is not liked more than others."""
    return result.outcome.unused if isinstance(result.outcome, Understood) else ()


def _which_table(scopes: Sequence[DataScope]) -> Unclear:
    ids = [scope.source.tables[0] for scope in scopes]
    files = list(dict.fromkeys(id.file for id in ids))
    names = files if len(files) == len(ids) else [id.part or id.file for id in ids]
    quoted = [f"`{name}`" for name in names]
    kind = "file" if names == files else "table"
    return Unclear(f"Which {kind}: {', '.join(quoted[:-1])} or {quoted[-1]}?", "", tuple(names))
