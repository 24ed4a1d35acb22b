"""Odd forms of a model's reply, sent once and sent every time: is the user still answered?

Each of 69 forms (`bench.odd.variants`) is a way of writing two replies, a cell and the answer with
its number. It is played through a whole round with a real kernel: once, where the first cell and
the first answer are odd and a correction is followed, and every time. A round is right when the
user has the answer, the cell ran once, and nothing of the form is left in the text. Six forms
cannot be answered when they never change; they have to end within bounds, without an untrue answer.

``python -m bench.odd_replies json`` names a form in force, and lists what is lost.
"""

from __future__ import annotations

import sys

from bench.common import sized
from bench.odd.playing import play
from bench.odd.variants import FORMS, variants

MOST = sized(None, 1)
GOALS = {"json, once": 69, "json, every time": 63}


def run(
    forms: tuple[str, ...] = sized(FORMS, ("json",)), *, lists: bool = False
) -> dict[str, float]:
    """Return the number of odd forms, of right rounds, and of those that ended dishonestly.

    Args:
        forms: The forms that the model is asked to keep.
        lists: Whether a line is printed for each lost round.
    """
    figures: dict[str, float] = {}
    for form in forms:
        chosen = [variant for variant in variants() if form in variant.forms][:MOST]
        figures[f"{form}, odd forms"] = len(chosen)
        for mode in ("once", "every time"):
            played = list(play(chosen, form, is_stubborn=mode == "every time"))
            lost = [one for one in played if not one.is_right]
            figures[f"{form}, {mode}"] = len(played) - len(lost)
            untrue = [one for one in lost if not one.is_honest]
            figures[f"{form}, {mode}, untrue or run again"] = len(untrue)
            for one in lost if lists else ():
                shown = " ".join(one.round.post_list[-1].message.split())[:100]
                print(f"  lost: {form}, {mode}: {one.variant.name} ({one.calls} calls): {shown}")
    return figures


def show(figures: dict[str, float]) -> None:
    """Print the figures with their goals."""
    for name, value in figures.items():
        goal = f"   goal >= {GOALS[name]}" if name in GOALS else ""
        print(f"  {name:<44}{value:>4.0f}{goal}")


if __name__ == "__main__":
    show(run(tuple(sys.argv[1:]) or FORMS, lists=True))
