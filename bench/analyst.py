"""Questions of analysts, put to the offline analyst: right, refused and wrong, by class.

The questions are data (`bench/questions`); pandas computes what is right, apart from TaskWeaver.
A third is held out: counted, and never printed. ``TASKWEAVER_BENCH_VERBOSE=wrong`` (or ``refused``,
or ``wrong,refused``) prints the open questions with such answers, with what was wanted and given;
``TASKWEAVER_BENCH_CLASS=filter,plot`` asks those classes alone.
Run with ``python -m bench analyst``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from bench.common import sized
from bench.questions.asking import Asked, ask
from bench.questions.judging import Verdict
from bench.questions.model import Question, load

VERBOSE, CLASS = "TASKWEAVER_BENCH_VERBOSE", "TASKWEAVER_BENCH_CLASS"
VERDICTS: tuple[Verdict, ...] = ("right", "refused", "wrong")
GOALS = {"right": 0.65, "wrong": 0.0}
"""Shares of all questions: at least so many right, and so many wrong."""


def chosen() -> list[Question]:
    """Return the questions to ask: all whose files can be had, or one for the smoke test."""
    classes = set(filter(None, os.environ.get(CLASS, "").split(",")))
    everything = [*load("open"), *load("held_out")]
    kept = [question for question in everything if not classes or question.group in classes]
    kept = [question for question in kept if question.can_be_asked]
    return sized(kept, [question for question in kept if question.files == ("penguins.csv",)][:1])


def run() -> dict[str, float]:
    """Return counts: ``<class>_<verdict>``, ``all_``, ``open_`` and ``held_out_``; seconds."""
    questions = chosen()
    counts: Counter[str] = Counter()
    for question in questions:
        for name in _rows(question):
            counts.update({f"{name}_{verdict}": 0 for verdict in VERDICTS})
    began = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for asked in ask(questions, Path(folder)):
            counts.update(f"{name}_{asked.verdict}" for name in _rows(asked.question))
            _tell(asked, os.environ.get(VERBOSE, "").split(","))
    left_out = len(load("open")) + len(load("held_out")) - len(questions)
    return {name: float(count) for name, count in counts.items()} | {
        "not_asked": float(left_out),
        "seconds": perf_counter() - began,
    }


def _rows(question: Question) -> tuple[str, ...]:
    return "all", "held_out" if question.is_held_out else "open", question.group


def _tell(asked: Asked, verdicts: Sequence[str]) -> None:
    """Print an open question, if its verdict is one of those to be printed."""
    question = asked.question
    if asked.verdict not in verdicts or question.is_held_out:
        return
    print(f"\n-- {asked.verdict}: {question.id} ({', '.join(question.files)})", file=sys.stderr)
    for turn, answer in zip(question.turns, asked.answers, strict=True):
        print(f"asked:  {turn.ask}", file=sys.stderr)
        if turn.kind:
            print(f"wanted: {turn.kind} {question.value(turn)}", file=sys.stderr)
        print(f"given:  {answer.text[:600]}", file=sys.stderr)


def show(figures: dict[str, float]) -> None:
    """Print a table of the classes and the shares with their goals."""
    print("answers of the offline analyst to analysts' questions")
    print(f"  {'class':<20}{'right':>8}{'refused':>9}{'wrong':>7}")
    names = [name.removesuffix("_right") for name in figures if name.endswith("_right")]
    totals = [name for name in ("open", "held_out", "all") if name in names]
    for name in sorted(set(names) - set(totals)) + totals:
        right, refused, wrong = (int(figures[f"{name}_{verdict}"]) for verdict in VERDICTS)
        print(f"  {name:<20}{right:>8}{refused:>9}{wrong:>7}")
    asked = sum(figures[f"all_{verdict}"] for verdict in VERDICTS)
    for verdict, goal in GOALS.items():
        share = figures[f"all_{verdict}"] / asked if asked else 0.0
        print(f"  {verdict:<8}{share:>8.1%} of all   goal {'>=' if goal else ''} {goal:.0%}")
    print(f"  {figures['not_asked']:.0f} not asked; {figures['seconds']:.0f} s")


if __name__ == "__main__":
    show(run())
