"""Search in the earlier rounds of a conversation: the lines that suit a query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.vectors.embedders import static_embedder
from taskweaver.utils.retrieval import TextIndex, query_terms

_MOST_LINES = 8
_LINE_CHARS = 240
_SEARCHED = (AttachmentType.reply_content, AttachmentType.execution_result)


def earlier_lines(rounds: Sequence[Round], query: str) -> list[str]:
    """Return the lines of rounds that suit a query best, each quoted with its round.

    Args:
        rounds: The rounds, oldest first.
        query: The query.
    """
    lines = [line for number, round_ in enumerate(rounds, 1) for line in _lines(number, round_)]
    with closing(TextIndex([text for _, _, text in lines], static_embedder())) as index:
        best = [lines[at] for at in index.find(query, _MOST_LINES)]
    return [f"- round {number}, {author}: {_quoted(text, query)}" for number, author, text in best]


def _lines(number: int, round_: Round) -> Iterator[tuple[int, str, str]]:
    """Yield number, author and text of the lines of a round, each text once."""
    seen: set[str] = set()
    for author, text in _texts(round_):
        for line in map(str.strip, text.splitlines()):
            if line and line.casefold() not in seen:
                seen.add(line.casefold())
                yield number, author, line


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


def _quoted(text: str, query: str) -> str:
    """Return the part of a line with a word of the query as JSON, so that it stays data."""
    if len(text) > _LINE_CHARS:
        folded = text.casefold()
        places = [folded.find(word) for word in query_terms(query).words]
        first = min((place for place in places if place >= 0), default=0)
        start = max(min(first - _LINE_CHARS // 3, len(text) - _LINE_CHARS), 0)
        text = text[start : start + _LINE_CHARS]
    return json.dumps(text, ensure_ascii=False)
