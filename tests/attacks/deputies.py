"""Attacks in which the host acts for the code: it copies, keeps, lists or writes files.

Races of these operations are tests of their own (`tests/utils`, `tests/session`); here each is
tried a few times, and more often by `make long`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from attacks.attack import Attack, Outcome
from attacks.world import World

from taskweaver.errors import TaskWeaverError
from taskweaver.session.session import Session

GROUP = "the host as a deputy"
_TRIES = 10 if os.environ.get("ATTACKS") == "all" else 2
_HOST_ONLY = "the host copies where code cannot write"
# Swaps what appears in the folders of branches for a link to a folder outside, as fast as it can.
_SWAPPER = """
import os, sys
branches, target = sys.argv[1:]
while True:
    for place in [branches, *(f'{branches}/{name}' for name in os.listdir(branches))]:
        try: names = [name for name in os.listdir(place) if not name.startswith('aside')]
        except OSError: continue
        for name in names if place != branches else ():
            try:
                os.rename(f'{place}/{name}', f'{place}/aside{os.getpid()}-{len(os.listdir(place))}')
                os.symlink(target, f'{place}/{name}')
            except OSError: pass
"""
_SWAP = (
    "os.makedirs('many/inner', exist_ok=True)\n"
    "for n in range(400): open(f'many/f{n}', 'w').close()\n"
    "branches = os.path.abspath('../branches'); os.makedirs(branches, exist_ok=True)\n"
    f"swapper = subprocess.Popen([sys.executable, '-I', '-c', {_SWAPPER!r}, branches, '@DEPUTY@'])"
)


def _forks_as(name: str) -> Callable[[Session], None]:
    """Return what forks a session several times."""

    def act(session: Session) -> None:
        for number in range(_TRIES):
            with suppress(TaskWeaverError, OSError):
                session.fork(f"{name}-{number}")

    return act


def _undoes(session: Session) -> None:
    branch = session.branch
    for _ in range(_TRIES):
        with suppress(TaskWeaverError, OSError):
            session.undo()
            session.checkout(branch)


def _sends(session: Session) -> None:
    with suppress(TaskWeaverError):
        session.send_message("hello", files=[{"name": "sent.txt", "content": "from the host"}])


def _was_written(outside: World, outcome: Outcome) -> bool:
    """A file stands in the folder that the host was lured to."""
    return any(outside.deputy(outcome.slug).iterdir())


def _was_copied_in(outside: World, outcome: Outcome) -> bool:
    """The host has copied a file outside into a folder that code can read."""
    branches = outcome.cwd.parent / "branches"
    copies = [path for path in branches.rglob("lure.txt") if not path.is_symlink()]
    return any(outside.secret in path.read_text() for path in copies)


ATTACKS = (
    Attack(
        "have a fork write through a folder that is swapped for a link",
        _SWAP,
        _was_written,
        GROUP,
        guard=_HOST_ONLY,
        act=_forks_as("swapped"),
    ),
    Attack(
        "have an undo write through a folder that is swapped for a link",
        _SWAP,
        _was_written,
        GROUP,
        guard=_HOST_ONLY,
        act=_undoes,
    ),
    Attack(
        "have a fork copy what a link points to",
        "os.symlink(CANARY, 'lure.txt')",
        _was_copied_in,
        GROUP,
        guard="links are copied as links",
        act=_forks_as("copied"),
    ),
    Attack(
        "have a file of the user's written through a link",
        "os.symlink('@DEPUTY@/file', 'sent.txt')",
        _was_written,
        GROUP,
        guard="files are put in place by renaming",
        act=_sends,
    ),
    Attack(
        "have the next round end in a folder that is a link",
        "os.symlink('@DEPUTY@', '../branches/next-1')",
        _was_written,
        GROUP,
        guard="a branch is made in a folder of its own",
        act=_forks_as("next"),
    ),
    # The last one: without a sandbox the session's working folder is gone after it.
    Attack(
        "have a file of the user's written through a link for a folder",
        "os.rename('../cwd', '../branches/aside'); os.symlink('@DEPUTY@', '../cwd')",
        _was_written,
        GROUP,
        guard="the host follows no link on its way",
        act=_sends,
    ),
)
