"""Search in the earlier rounds of a conversation: the lines that hold the words of a query."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round

_MOST_LINES = 8
_LINE_CHARS = 240
_ROUND_SHARE = 0.3
"""Share of the weight of words that stand elsewhere in the round of a line."""

_SEARCHED = (AttachmentType.reply_content, AttachmentType.execution_result)


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    author: str
    text: str
    words: frozenset[str]


def earlier_lines(rounds: Sequence[Round], words: set[str]) -> list[str]:
    """Return the lines of rounds that hold most of some words, each quoted with its round.

    Args:
        rounds: The rounds, oldest first.
        words: Words of the query, folded; none that carry no meaning.
    """
    if not words:
        return []
    per_round = [list(_lines(number, round_, words)) for number, round_ in enumerate(rounds, 1)]
    in_rounds = [frozenset[str]().union(*(line.words for line in lines)) for lines in per_round]
    weights = _weights(words, in_rounds)
    scored = [
        (_score(line, around, weights), line.number, line)
        for lines, around in zip(per_round, in_rounds, strict=True)
        for line in lines
    ]
    best = nlargest(_MOST_LINES, scored, key=lambda item: item[:2])
    return [f"- round {line.number}, {line.author}: {_quoted(line, words)}" for *_, line in best]


def _weights(words: set[str], in_rounds: Sequence[frozenset[str]]) -> Mapping[str, float]:
    """Return the weight of each word: the fewer rounds have it, the more."""
    counts = {word: sum(word in found for found in in_rounds) for word in words}
    return {word: math.log(1 + len(in_rounds) / (1 + count)) for word, count in counts.items()}


def _score(line: _Line, around: frozenset[str], weights: Mapping[str, float]) -> float:
    own = sum(weights[word] for word in line.words)
    return own + _ROUND_SHARE * sum(weights[word] for word in around - line.words)


def _lines(number: int, round_: Round, words: set[str]) -> Iterator[_Line]:
    """Yield the lines of a round that hold a word, each text once."""
    seen: set[str] = set()
    for author, text in _texts(round_):
        for line in text.splitlines():
            folded = line.casefold()
            found = frozenset(word for word in words if word in folded)
            if found and folded not in seen:
                seen.add(folded)
                yield _Line(number, author, line.strip(), found)


def _texts(round_: Round) -> Iterator[tuple[str, str]]:
    yield "user", round_.user_query
    for post in round_.post_list:
        if post.message != round_.user_query:
            yield _author(post), post.message
        for kind in _SEARCHED:
            for item in post.get_attachment(kind):
                yield _author(post), str(item.content)


def _author(post: Post) -> str:
    return "user" if post.send_from == "User" else post.send_from


def _quoted(line: _Line, words: set[str]) -> str:
    """Return the part of a line with the first of its words as JSON, so that it stays data."""
    text = line.text
    if len(text) > _LINE_CHARS:
        folded = text.casefold()
        first = min(folded.find(word) for word in words if word in folded)
        start = max(min(first - _LINE_CHARS // 3, len(text) - _LINE_CHARS), 0)
        text = text[start : start + _LINE_CHARS]
    return json.dumps(text, ensure_ascii=False)
