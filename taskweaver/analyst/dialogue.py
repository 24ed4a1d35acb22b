"""Dialogue with the offline analyst: the state between the requests of a conversation."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.analyst.mentions import find_files
from taskweaver.analyst.reading import NeedsLook, NotUnderstood, Outcome, Reading, Unclear
from taskweaver.analyst.world import World


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Immutable state of a conversation.

    Attributes:
        previous: Reading of the last request that was understood; None at the start.
        pending: Question that the user has been asked; None for none.
        asked: The request that the question is about.
    """

    previous: Reading | None = None
    pending: Unclear | None = None
    asked: str = ""

    def say(self, text: str, world: World) -> tuple[Dialogue, Outcome]:
        """Read the next message of the user.

        Args:
            text: The message.
            world: Files and tables that it can refer to.

        Returns:
            The state after it, and the outcome. After `NeedsLook` the state is unchanged: say
            the same text again with the profiles of the files.
        """
        known = {table.file for table in world.tables}
        named = [mention.file for mention in find_files(text, world.files) if mention.file]
        if unknown := tuple(name for name in named if name not in known):
            return self, NeedsLook(unknown)
        return self, NotUnderstood(words=tuple(text.split()))
