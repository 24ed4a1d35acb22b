"""An attack: code that runs in a session's kernel, and how its effect is seen from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attacks.world import World

from taskweaver.session.session import Session


@dataclass(frozen=True, slots=True)
class Outcome:
    """Report of an attack's code about itself.

    Attributes:
        slug: Name of the attack, as a file name.
        is_claimed: Whether the code reports success.
        found: Text that it found.
        cwd: Working directory of the kernel.
    """

    slug: str
    is_claimed: bool
    found: str
    cwd: Path


Effect = Callable[[World, Outcome], bool]


def left_a_file(outside: World, outcome: Outcome) -> bool:
    """A file of the attack's name stands outside."""
    return outside.marker(outcome.slug).exists()


def found_the_secret(outside: World, outcome: Outcome) -> bool:
    """The code holds a text that stands outside only."""
    return outside.secret in outcome.found


def called_out(outside: World, outcome: Outcome) -> bool:
    """A listener outside has received the attack's name."""
    return outside.was_called(outcome.slug)


def ended_the_victim(outside: World, _: Outcome) -> bool:
    """A process outside has ended."""
    return outside.victim_has_ended


def is_listening(outside: World, outcome: Outcome) -> bool:
    """A socket of the code accepts connections from outside."""
    return outcome.found.isdigit() and outside.is_reachable(int(outcome.found))


def succeeded(_: World, outcome: Outcome) -> bool:
    """The system granted a call, of which nothing is left to be seen."""
    return outcome.is_claimed


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack.

    Code finds the names that `World.names` gives, and sets ``done`` or ``found``. In texts between
    two ``@`` the same names are replaced by their values before the code runs.

    Attributes:
        name: The attempt, in a few words.
        code: A cell.
        effect: Tells from outside whether it succeeded.
        group: Heading in the table.
        guard: The reason why it fails without a sandbox, too; empty if it succeeds there.
        is_by_machine: Whether it depends on the machine's kernel that it succeeds anywhere.
        act: Has the host act for the code, after the cell has run.
        keys: Configuration that it needs in a sandbox; the other attacks run with it, too.
    """

    name: str
    code: str
    effect: Effect = succeeded
    group: str = ""
    guard: str = ""
    is_by_machine: bool = False
    act: Callable[[Session], None] | None = None
    keys: tuple[tuple[str, object], ...] = ()

    @property
    def slug(self) -> str:
        """The name as a file name."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.name)
