"""Parsing a streamed reply of 200 KB in pieces of a few words, against reading it at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import median
from time import perf_counter

from bench.common import show, sized
from taskweaver.llm.parsing.json_text import ReplyStream

REPLY_CHARS = sized(200_000, 2_000)
PIECE_CHARS = 24
ROUNDS = sized(30, 2)
GOAL_MS = 50.0


def _reply() -> str:
    line = 'df = df[df["Region"] == "Nörth"]  # keep one region\n'
    code = line * (REPLY_CHARS // len(line))
    fields = {"thought": "Filter.", "reply_type": "python", "reply_content": code}
    return json.dumps({"response": fields})


def _stream(pieces: list[str]) -> None:
    stream = ReplyStream()
    shown = [delta.text for piece in pieces for delta in stream.feed(piece)]
    rest, reply = stream.finish()
    text = "".join(shown) + "".join(delta.text for delta in rest)
    if reply.problem is not None or text != "".join(reply.fields.values()):
        raise AssertionError("the reply was not read as it was written")


def _milliseconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return (perf_counter() - start) * 1000


def run() -> dict[str, float]:
    """Return medians in milliseconds."""
    reply = _reply()
    pieces = [reply[at : at + PIECE_CHARS] for at in range(0, len(reply), PIECE_CHARS)]
    whole, streamed = [], []
    for _ in range(ROUNDS):
        whole.append(_milliseconds(lambda: json.loads(reply)))
        streamed.append(_milliseconds(lambda: _stream(pieces)))
    return {
        "pieces": float(len(pieces)),
        "json.loads of the whole, ms": median(whole),
        "ReplyStream, all pieces, ms": median(streamed),
        "goal, ms": GOAL_MS,
    }


if __name__ == "__main__":
    show(run())
