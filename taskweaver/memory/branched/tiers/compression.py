"""Shortens texts: with a model when there is one, by cutting otherwise.

Prompts are files; one of the same name in the project's folder replaces the package's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.operation_log import OperationLog
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.types import TextModel
from taskweaver.utils.text import unfenced

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass
class PromptedModel:
    """A language model that is asked with prompt files of the memory."""

    _llm: TextModel
    _folder: Path | None

    def ask(self, name: str, values: Mapping[str, object]) -> str:
        """Return the answer to a prompt with the placeholders filled in, without a fence.

        Other braces of the prompt stay as they are.

        Raises:
            InvalidUpdate: If the project's file cannot be read.
            Exception: Whatever the model raises.
        """
        file = f"{name}.txt"
        own = None if self._folder is None else self._folder / file
        if own is None or not own.exists():
            text = (Path(__file__).parent / "prompts" / file).read_text("utf-8")
        else:
            try:
                text = own.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidUpdate(str(own), f"cannot be read: {error}") from error
        prompt = _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), text)
        return unfenced(self._llm(prompt))


class Compressor:
    """Makes texts fit. A model's short form of a text is kept in the file, by the text's hash."""

    def __init__(
        self,
        database: Database,
        config: MemoryConfig,
        model: PromptedModel | None,
        log: OperationLog,
    ) -> None:
        self._database = database
        self._config = config
        self._model = model if config.use_llm_compression else None
        self._log = log

    @staticmethod
    def cut(text: str, max_chars: int) -> str:
        """Return the beginning of a text, with dots when something was cut off."""
        if len(text) <= max_chars:
            return text
        if max_chars <= 3:
            return text[: max(0, max_chars)]
        return text[: max_chars - 3].rstrip() + "..."

    def compress(self, text: str, max_chars: int, hint: str, *, context: str = "") -> str:
        """Return a text of at most `max_chars` characters that says the same.

        Must not be called inside a write transaction: it asks a model, and writes. Inside of
        `Database.together` the text is cut, since others would wait for the model.

        Args:
            text: The text.
            max_chars: Most characters of the result.
            hint: Kind of the text, in words.
            context: Subject of the work, for which details are weighed.
        """
        is_held = self._database.is_in_together
        if len(text) <= max_chars or max_chars <= 0 or self._model is None or is_held:
            return self.cut(text, max_chars)
        key = hashlib.sha256("\0".join([text, str(max_chars), hint, context]).encode()).hexdigest()
        kept = self._database.reading.execute(
            "SELECT text FROM compressions WHERE id = ?", (key,)
        ).fetchone()
        if kept is not None:
            return str(kept[0])
        try:
            short = self._ask(self._model, text, max_chars, hint, context)
        except Exception as error:  # noqa: BLE001 - a model may raise anything; cutting always works
            self._log.problem("a text was cut, the model did not shorten it", error)
            return self.cut(text, max_chars)
        self._database.write(
            lambda writer: writer.connection.execute(
                "INSERT OR REPLACE INTO compressions VALUES (?, ?, ?)", (key, short, writer.now)
            )
        )
        return short

    def _ask(self, model: PromptedModel, text: str, max_chars: int, hint: str, context: str) -> str:
        """Ask again with the shorter text while the text is too long and gets shorter."""
        section = f"What the work is about:\n{context}\n" if context else ""
        for _ in range(self._config.max_compression_iterations):
            values = {
                "max_chars": max_chars,
                "current_chars": len(text),
                "context_hint": hint,
                "text": text,
                "memory_context": context,
                "memory_context_section": section,
            }
            answer = model.ask("compression", values)
            if not answer or len(answer) >= len(text):
                break
            text = answer
            if len(text) <= max_chars:
                break
        return self.cut(text, max_chars)
