"""Questions as data: the YAML files, and the values their expectations come to.

A file holds a class of questions: its name, the files they are about, and the questions. A
question has an `id` and either one turn (`ask` and what is wanted) or a list `turns`. `held_out`
questions are in a folder of their own; the hash of the id decides which these are.

A turn wants one of `KINDS`:

===========  ======================================================================================
number       an expression: the number
share        an expression: a fraction; the answer may state it in percent
numbers      an expression: several numbers, all of them
text         an expression: a text; `among`: the texts it is one of
names        an expression: several texts, no others of `among`; `ordered`: in this order
date         an expression: a day
table        an expression: a series, or a frame whose index holds the keys; `percent`: fractions
             that the answer may state in percent
plot         `kind` of the picture and `columns` that it is drawn from
contains     words that the answer must hold
refuse       true: there is no answer to this
asks         true: this cannot be answered before the user has said more
===========  ======================================================================================

Expressions are Python: the frames of the files by name, and `pd` and `np`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.questions.files import frames, is_available
from taskweaver.utils.files import read_yaml

FOLDER = Path(__file__).parent
KINDS = (
    "number", "share", "numbers", "text", "names", "date", "table",
    "plot", "contains", "refuse", "asks",
)  # fmt: skip
_COMPUTED = KINDS[:7]
_OPTIONS = {"ask", "among", "ordered", "percent", "tolerance"}


@dataclass(frozen=True)
class Turn:
    """One message of the user.

    Attributes:
        ask: The text.
        kind: One of `KINDS`; empty if its answer is not judged.
        want: The wanted value as it is written: an expression, or plain data.
        among: Expression of the texts that `want` is taken from.
        is_ordered: Whether names must come in order.
        is_share: Whether the values of a table may be stated in percent.
        tolerance: The relative difference that is allowed.
    """

    ask: str
    kind: str = ""
    want: Any = None
    among: str = ""
    is_ordered: bool = False
    is_share: bool = False
    tolerance: float = 1e-3


@dataclass(frozen=True)
class Question:
    """A conversation whose answers are judged.

    Attributes:
        id: Unique.
        group: The class of the question.
        files: The files of the project.
        turns: The messages, in order.
        is_held_out: Whether writers of the analyst leave it unread.
    """

    id: str
    group: str
    files: tuple[str, ...]
    turns: tuple[Turn, ...]
    is_held_out: bool

    @property
    def can_be_asked(self) -> bool:
        """Whether the packages with its files are installed."""
        return all(map(is_available, self.files))

    def value(self, turn: Turn) -> Any:
        """Return the wanted value of a turn, computed by pandas."""
        return evaluate(turn.want, self.files) if turn.kind in _COMPUTED else turn.want

    def choices(self, turn: Turn) -> list[str]:
        """Return the texts a wanted text is taken from."""
        return [str(text) for text in evaluate(turn.among, self.files)] if turn.among else []


def evaluate(expression: str, files: tuple[str, ...]) -> Any:
    """Return the value of an expression over the frames of files."""
    return _evaluated(str(expression), files)


@lru_cache(maxsize=8)
def _evaluated(expression: str, files: tuple[str, ...]) -> Any:
    """Return a value, of which one turn makes use several times."""
    return eval(expression, {"pd": pd, "np": np, **frames(files)})


def is_chosen(id: str) -> bool:
    """Return whether a question with this id is held out: a third, by hash."""
    return int(hashlib.sha256(id.encode()).hexdigest(), 16) % 3 == 0


def _turn(entry: Mapping[str, Any]) -> Turn:
    kinds = [kind for kind in KINDS if kind in entry]
    unknown = set(entry) - set(KINDS) - _OPTIONS - {"id", "files", "held_out"}
    if len(kinds) > 1 or unknown:
        raise ValueError(f"{entry['ask']!r} wants {kinds}; unknown: {sorted(unknown)}")
    return Turn(
        entry["ask"],
        kinds[0] if kinds else "",
        entry[kinds[0]] if kinds else None,
        entry.get("among", ""),
        entry.get("ordered", False),
        entry.get("percent", False),
        entry.get("tolerance", 1e-3),
    )


def _question(entry: Mapping[str, Any], sheet: Mapping[str, Any]) -> Question:
    turns = tuple(map(_turn, entry.get("turns") or [entry]))
    files = tuple(entry.get("files") or sheet.get("files") or ())
    return Question(entry["id"], sheet["class"], files, turns, entry.get("held_out", False))


@cache
def load(folder: str) -> tuple[Question, ...]:
    """Return the questions of a folder, ``open`` or ``held_out``.

    Raises:
        ValueError: If a question wants two things, or has an unknown key.
    """
    found = []
    for path in sorted((FOLDER / folder).glob("*.yaml")):
        sheet = read_yaml(path)
        found += [_question(entry, sheet) for entry in sheet["questions"]]
    return tuple(found)
