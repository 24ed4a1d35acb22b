"""A role's view of a long conversation, beside copying the history for every prompt.

A conversation of 1,200 posts is looked at when nothing is new and when one post is, and each
time beside a deep copy of the same posts. Run with ``python -m bench.memory_view``.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from time import perf_counter

from bench.common import sized
from taskweaver.memory import Attachment, Memory, Post, Round, SharedMemoryEntry

ROUNDS = sized(200, 3)
POSTS_PER_ROUND = 6
REPEATS = sized(30, 2)
ROLE = "Planner"


def run() -> dict[str, float]:
    """Return medians in seconds: ``unchanged``, ``one_post_more``, ``shared``, ``deepcopy``."""
    memory = conversation()
    last = memory.conversation.rounds[-1]
    jobs: dict[str, Callable[[], object]] = {
        "unchanged": lambda: memory.get_role_rounds(ROLE),
        "one_post_more": lambda: memory.get_role_rounds(ROLE),
        "shared": lambda: memory.get_shared_memory_entries("plan"),
        "deepcopy": lambda: copied_view(memory.conversation.rounds),
    }
    times: dict[str, list[float]] = {name: [] for name in jobs}
    memory.get_role_rounds(ROLE)
    for _ in range(REPEATS):
        for name, job in jobs.items():
            if name == "one_post_more":
                memory.add_post(last, post(len(last.post_list)))
            since = perf_counter()
            job()
            times[name].append(perf_counter() - since)
    return {name: statistics.median(values) for name, values in times.items()}


def conversation() -> Memory:
    """Return a memory with finished rounds between user, Planner and CodeInterpreter."""
    memory = Memory("bench")
    for number in range(ROUNDS):
        round_ = memory.create_round(f"question {number}")
        for turn in range(POSTS_PER_ROUND):
            memory.add_post(round_, post(turn))
        memory.end_round(round_, "finished")
    return memory


def post(turn: int) -> Post:
    """Return a post as the roles write them: a message and four attachments."""
    sender, receiver = (ROLE, "CodeInterpreter") if turn % 2 else ("CodeInterpreter", ROLE)
    new = Post.create("a message of some length " * 20, sender, receiver)
    for kind in ("plan", "current_plan_step", "thought"):
        new.add_attachment(Attachment.create(kind, "one line\nand another " * 10))
    entry = SharedMemoryEntry.create("plan", "1. do it", "round")
    new.add_attachment(Attachment.create("shared_memory_entry", "1. do it", extra=entry))
    return new


def copied_view(rounds: list[Round]) -> list[Round]:
    """Return the baseline: every post of the role copied, as if nothing were known before."""
    return [
        Round(
            round_.id,
            round_.user_query,
            round_.state,
            [copy.deepcopy(p) for p in round_.post_list if ROLE in (p.send_from, p.send_to)],
        )
        for round_ in rounds
    ]


def show(figures: dict[str, float]) -> None:
    """Print the table."""
    baseline = figures["deepcopy"]
    print(f"{ROUNDS * POSTS_PER_ROUND:,} posts; goal for an unchanged view: 1 ms")
    for name, seconds in figures.items():
        print(f"{name:14} {seconds * 1000:9.3f} ms  {baseline / seconds:8.1f} times faster")


if __name__ == "__main__":
    show(run())
