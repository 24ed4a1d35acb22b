"""The common parts of roles' prompts: their files, and rounds composed only once.

A prompt file is a YAML mapping of names to texts. Named places ``{LIKE_THIS}`` are filled by
plain replacement in one pass, so text from outside is never a template.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from taskweaver.config.errors import ConfigError
from taskweaver.llm.types import ChatMessage, format_chat_message
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.round import Round
from taskweaver.memory.summaries import CompactedMessage
from taskweaver.role.forms.offer import object_schema
from taskweaver.role.original_prompt import OriginalPrompt
from taskweaver.utils.files import parse_yaml_once, read_text, read_yaml
from taskweaver.utils.markup.quoting import quoted_section

CONVERSATION_START = "Let's start the new conversation!"
_UNANSWERED = "(The round was interrupted or failed here: its request has no answer.)"

ComposeRound = Callable[[Round, Round | None], list[ChatMessage]]
"""Composes a round, given the round before it that has any posts."""


def prompt_version(path: Path) -> int:
    """Return the version of a prompt file: 1 where it names none, or cannot be read."""
    try:
        data = read_yaml(path)
    except (OSError, ValueError):
        return 1
    version = data.get("version") if isinstance(data, Mapping) else None
    return version if isinstance(version, int) else 1


def load_prompt(
    path: Path,
    names: Sequence[str],
    packaged: Mapping[str, str] | None = None,
    original: OriginalPrompt | None = None,
) -> dict[str, str]:
    """Read the texts `names` of a prompt file, and those of `packaged` with their defaults.

    A file of the original is read by `original`; None reads none.

    Raises:
        ConfigError: If the file cannot be read or a text is missing.
    """
    remedy = "Correct the file, or remove the key to use the packaged prompt."
    try:
        data = parse_yaml_once(read_text(path), str(path))
    except (OSError, ValueError) as error:
        raise ConfigError("prompt_file_path", f"{path} cannot be read: {error}", remedy) from error
    texts = data if isinstance(data, Mapping) else {}
    if original is not None and original.matches(texts):
        texts = original.translated(texts)
    missing = [name for name in names if not isinstance(texts.get(name), str)]
    if missing:
        raise ConfigError("prompt_file_path", f"{path} lacks {', '.join(missing)}", remedy)
    found = {name: texts[name] for name in names}
    found |= {name: str(texts.get(name, text)) for name, text in (packaged or {}).items()}
    return {name: text.strip() for name, text in found.items()}


def reply_schema(fields: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Return the JSON schema ``{"response": {...}}`` with the given text fields, all required."""
    properties = {name: {"type": "string", **facts} for name, facts in fields.items()}
    return object_schema({"response": object_schema(properties)})


class ComposedRounds:
    """Messages of past rounds, kept so that only new rounds are composed."""

    def __init__(self) -> None:
        self._ids: list[tuple[str, str]] = []
        self._messages: list[ChatMessage] = []

    def messages(
        self,
        rounds: Sequence[Round],
        compose: ComposeRound,
        heads: Mapping[str, str],
    ) -> list[ChatMessage]:
        """Return the messages of rounds.

        Args:
            rounds: The rounds. The newest round is composed anew in each prompt.
            compose: Composes a round.
            heads: Texts before rounds, by their ids. A changed head composes all rounds again.
        """
        ids = [(round_.id, heads.get(round_.id, "")) for round_ in rounds[:-1]]
        if ids[: len(self._ids)] != self._ids:
            self._ids, self._messages = [], []

        def opened(index: int) -> list[ChatMessage]:
            round_ = rounds[index]
            return with_head(compose(round_, _before(rounds, index)), heads.get(round_.id, ""))

        for index in range(len(self._ids), len(ids)):
            self._messages += _with_end(opened(index), rounds[index])
        self._ids = ids
        return self._messages + (opened(len(ids)) if rounds else [])


def _with_end(messages: list[ChatMessage], round_: Round) -> list[ChatMessage]:
    """Return the messages of a round, with a note at its end where it failed without an answer."""
    posts = round_.post_list
    if round_.state != "failed" or not messages or (posts and posts[-1].send_to == "User"):
        return messages
    last = messages[-1]
    if last["role"] == "assistant":
        return [*messages, format_chat_message("user", _UNANSWERED)]
    return [*messages[:-1], with_tail(last, _UNANSWERED)]


def _before(rounds: Sequence[Round], index: int) -> Round | None:
    """Return the last round before `index` that has any posts."""
    return next((rounds[i] for i in range(index - 1, -1, -1) if rounds[i].post_list), None)


def example_messages(examples: Sequence[Conversation], compose: ComposeRound) -> list[ChatMessage]:
    """Return the messages of example conversations."""
    return [
        message
        for conversation in examples
        for index, round_ in enumerate(conversation.rounds)
        for message in with_start(
            compose(round_, _before(conversation.rounds, index)), is_first=index == 0
        )
    ]


def with_start(
    messages: list[ChatMessage],
    *,
    is_first: bool = True,
    compaction: CompactedMessage | None = None,
) -> list[ChatMessage]:
    """Return `messages`, the first opened by the start line and the summary of earlier rounds.

    Those that do not begin a conversation are returned as they are.
    """
    if not is_first:
        return messages
    head = CONVERSATION_START
    if compaction is not None:
        head += f"\n\n## Summary of earlier rounds\n{quoted_section(compaction.summary)}"
    return with_head(messages, head)


def with_head(messages: list[ChatMessage], head: str) -> list[ChatMessage]:
    """Return `messages`, the first of them opened by a text."""
    if not messages or not head:
        return messages
    first = messages[0]
    content = first["content"] or ""
    opened = (
        f"{head}\n\n{content}"
        if isinstance(content, str)
        else [{"type": "text", "text": head}, *content]
    )
    return [{**first, "content": opened}, *messages[1:]]


def with_tail(message: ChatMessage, text: str) -> ChatMessage:
    """Return a message with a text at its end."""
    content = message["content"]
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": text}]}
    return {**message, "content": f"{content}\n\n{text}" if content else text}
