"""True and false answers: does the check mark the false ones, and none of the true?

``bench/answers/cases.yaml`` has groups of answers with what their author had read: the listing, the
request, the outcome of a cell and its code. An answer is marked where a number of it stands in none
of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from taskweaver.session.answers.check import verify
from taskweaver.session.answers.outcomes import CODE, SupportingText

CASES = Path(__file__).with_name("answers") / "cases.yaml"


class Case(NamedTuple):
    """An answer, what its author had read, and whether it is true."""

    answer: str
    sources: tuple[SupportingText, ...]
    is_true: bool

    @property
    def marked(self) -> tuple[str, ...]:
        """The numbers of the answer that are marked."""
        return verify(self.answer, self.sources).unsupported_numbers


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for group in yaml.safe_load(CASES.read_text("utf-8")):
        sources = tuple(_sources(group))
        for is_true in (True, False):
            for answer in group[is_true]:
                yield Case(answer, sources, is_true)


def _sources(group: dict[str, Any]) -> Iterator[SupportingText]:
    for key, where in (
        ("result", "Result"), ("asked", "message"), ("listing", "Listing"), ("code", CODE),
    ):  # fmt: skip
        yield SupportingText("p", int(key in {"result", "code"}), where, group.get(key, ""))


def run(*, lists: bool = False) -> dict[str, float]:
    """Return the number of answers, and of those that are marked; print the wrong ones."""
    found = list(cases())
    wrong = [case for case in found if bool(case.marked) == case.is_true]
    for case in wrong if lists else ():
        print(f"  wrong: {case.answer} {list(case.marked)}")
    return {
        "true answers": sum(case.is_true for case in found),
        "true answers that are marked": sum(case.is_true for case in wrong),
        "false answers": sum(not case.is_true for case in found),
        "false answers that are not marked": sum(not case.is_true for case in wrong),
    }


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    for name, value in figures.items():
        goal = "   goal 0" if "marked" in name else ""
        print(f"  {name:<44}{value:>4.0f}{goal}")


if __name__ == "__main__":
    show(run(lists=True))
