"""Experiences: conversations kept so that later ones may learn from them.

A raw experience (``raw_exp_<id>.yaml``) is a whole conversation; a handcrafted one
(``handcrafted_exp_<id>.yaml``) is a text written by hand. Of each an experience (``exp_<id>.yaml``)
is made: the text that is shown to a role when it suits the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

from taskweaver.errors import TaskWeaverError
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.conversation import Conversation, ConversationError, SubPathRefused
from taskweaver.memory.round import Round
from taskweaver.memory.vectors.embedders import embedder
from taskweaver.utils.files import PRIVATE, dump_yaml, inside, read_yaml, write_yaml
from taskweaver.utils.retrieval import TextIndex
from taskweaver.utils.text import shorten

PROMPT_FILE = Path(__file__).with_name("experience_prompt.yaml")
SEPARATOR = "==================="
_RAW, _HANDCRAFTED, _MADE = "raw_exp_", "handcrafted_exp_", "exp_"
_TELLING = {AttachmentType.plan, AttachmentType.reply_content, AttachmentType.code_error}
_PLAIN = frozenset(AttachmentType) - {AttachmentType.reply_record}
_MOST_CHARS = 30_000


def save_raw_experience(
    conversation: Conversation, session_id: str, exp_dir: str | Path, *, thin_mode: bool = True
) -> Path:
    """Write a conversation as ``raw_exp_<session_id>.yaml``, all or nothing, and return the file.

    `Conversation.from_yaml` reads it back. The folder is made when missing; `thin_mode` leaves out
    all attachments but plans; records of replies are left out always.

    Raises:
        ConversationError: If it cannot be written, or the id is not a file's name.
    """
    name = f"raw_exp_{session_id}.yaml"
    if Path(name).name != name or "\0" in name:
        raise ConversationError(name, "the session id cannot be part of a file's name.")
    kept = {AttachmentType.plan} if thin_mode else _PLAIN
    rounds = [_only(round_, kept) for round_ in conversation.rounds]
    conversation = replace(conversation, rounds=rounds)
    path = Path(exp_dir) / name
    conversation.to_yaml(path)
    return path


def _only(round_: Round, types: AbstractSet[AttachmentType]) -> Round:
    """Return a round whose posts have attachments of some types only."""
    posts = []
    for post in round_.post_list:
        kept = [item for item in post.attachment_list if item.type in types]
        posts.append(replace(post, attachment_list=kept))
    return replace(round_, post_list=posts)


class ExperienceModel(Protocol):
    """A model, as far as experiences need one."""

    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        """Return the model's reply to `text`."""

    def get_embedding_list(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text."""


@dataclass(slots=True)
class Experience:
    """Lessons of a conversation.

    Attributes:
        experience_text: The text.
        exp_id: Its id.
        raw_experience_path: The conversation it was made of; None for a handcrafted one.
        embedding_model: Model of the vector that an earlier version stored; None without one.
        embedding: That vector; empty without one.
    """

    experience_text: str
    exp_id: str
    raw_experience_path: str | None = None
    embedding_model: str | None = None
    embedding: list[float] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Build an experience from the wire form.

        Raises:
            KeyError: If text or id is missing.
        """
        return cls(
            experience_text=str(data["experience_text"]),
            exp_id=str(data["exp_id"]),
            raw_experience_path=data.get("raw_experience_path"),
            embedding_model=data.get("embedding_model"),
            embedding=list(data.get("embedding") or []),
        )


class ExperienceGenerator:
    """The experiences of a folder: made, read, and chosen for a request.

    Attributes:
        experience_list: Those that were loaded.
    """

    def __init__(
        self,
        model: ExperienceModel,
        experience_dir: str | Path,
        *,
        embedding_model: str = "",
        threshold: float = 0.2,
        llm_alias: str = "",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Look after a folder.

        Args:
            model: Sums raw experiences up, and embeds texts.
            experience_dir: The folder.
            embedding_model: Name of the embedding model; empty takes the table of the package.
            threshold: Least similarity, from 0 to 1, of an experience that is chosen.
            llm_alias: Which model sums up; empty is the main one.
            tell: Receives messages on entries that could not be used.
        """
        self._model = model
        self._folder = Path(experience_dir)
        self._sub_path = ""
        self._embedder = embedder(embedding_model, model.get_embedding_list, tell)
        self._index: TextIndex | None = None
        self._threshold = threshold
        self._llm_alias = llm_alias
        self._tell = tell
        self.experience_list: list[Experience] = []

    def set_experience_dir(self, experience_dir: str | Path) -> None:
        """Look after another folder."""
        self._folder, self.experience_list = Path(experience_dir), []

    def set_sub_path(self, sub_path: str) -> None:
        """Look after a folder inside the folder.

        Raises:
            SubPathRefused: If it leads out of it.
        """
        try:
            inside(self._folder, sub_path)
        except (OSError, ValueError) as error:
            raise SubPathRefused(sub_path, f"{error}.") from error
        if sub_path != self._sub_path:
            self._sub_path, self.experience_list = sub_path, []

    def get_experience_dir(self) -> Path:
        """Return the folder that is looked after."""
        return self._folder / self._sub_path

    def refresh(self, prompt: str | None = None) -> list[str]:
        """Make experiences of new and changed entries, and return their ids.

        The prompt has the instructions for a summary; None takes the package's own.
        """
        folder, made = self.get_experience_dir(), []
        sources = sorted([*folder.glob(f"{_RAW}*.yaml"), *folder.glob(f"{_HANDCRAFTED}*.yaml")])
        for source in sources:
            exp_id = source.stem.removeprefix(_HANDCRAFTED).removeprefix(_RAW)
            target = folder / f"{_MADE}{exp_id}.yaml"
            if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
                continue
            try:
                write_yaml(target, self._made(source, exp_id, prompt).to_dict(), mode=PRIVATE)
            except (TaskWeaverError, OSError, ValueError, KeyError, TypeError) as error:
                self._tell(f"{source.name} is left out: {error}")
            else:
                made.append(exp_id)
        return made

    def _made(self, source: Path, exp_id: str, prompt: str | None) -> Experience:
        if source.name.startswith(_HANDCRAFTED):
            return Experience.from_dict({**read_yaml(source), "exp_id": exp_id})
        return Experience(self.summarize_experience(exp_id, prompt), exp_id, str(source))

    def summarize_experience(self, exp_id: str, prompt: str | None = None) -> str:
        """Return the model's summary of a raw experience.

        Raises:
            ConversationError: If it cannot be read.
            TaskWeaverError: If the model cannot be asked.
        """
        path = self.get_experience_dir() / f"{_RAW}{exp_id}.yaml"
        conversation = Conversation.from_yaml(path)
        rounds = [_without_ids(_only(round_, _TELLING).to_dict()) for round_ in conversation.rounds]
        instructions = prompt or str(read_yaml(PROMPT_FILE)["content"])
        text = shorten(dump_yaml({"rounds": rounds}), _MOST_CHARS)
        return self._model.summarize(instructions, text, self._llm_alias)

    def load_experience(self) -> list[Experience]:
        """Read the experiences of the folder."""
        found = []
        for path in sorted(self.get_experience_dir().glob(f"{_MADE}*.yaml")):
            try:
                # The file's name has the id, whatever the file says.
                exp_id = path.stem.removeprefix(_MADE)
                found.append(Experience.from_dict({**read_yaml(path), "exp_id": exp_id}))
            except (OSError, ValueError, KeyError, TypeError) as error:
                self._tell(f"{path.name} is left out: {error}")
        self.experience_list, self._index = found, None
        return found

    def retrieve_experience(self, user_query: str) -> list[tuple[Experience, float]]:
        """Return the loaded experiences that suit a request, the best first, with similarities."""
        items = self.experience_list
        if self._index is None:
            self._index = TextIndex([item.experience_text for item in items], self._embedder)
        found = self._index.find(user_query, len(items))
        return [(items[at], score) for at, score in found.items() if score >= self._threshold]

    def delete_experience(self, exp_id: str) -> None:
        """Delete an experience. The source stays."""
        self._delete(_MADE, exp_id)

    def delete_raw_experience(self, exp_id: str) -> None:
        """Delete a raw experience."""
        self._delete(_RAW, exp_id)

    def delete_handcrafted_experience(self, exp_id: str) -> None:
        """Delete a handcrafted experience."""
        self._delete(_HANDCRAFTED, exp_id)

    def _delete(self, prefix: str, exp_id: str) -> None:
        name = f"{prefix}{exp_id}.yaml"
        if Path(name).name != name:
            raise ConversationError(name, "an id is part of a file's name.")
        (self.get_experience_dir() / name).unlink(missing_ok=True)

    @staticmethod
    def format_experience_in_prompt(
        template: str, experiences: Sequence[tuple[Experience, float]]
    ) -> str:
        """Return a template with experiences in the place ``{experiences}``. Empty without any."""
        if not experiences:
            return ""
        texts = [item.experience_text.strip() for item, _ in experiences]
        return template.replace("{experiences}", f"\n{SEPARATOR}\n".join(texts))


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_ids(item) for key, item in value.items() if key != "id"}
    return [_without_ids(item) for item in value] if isinstance(value, list) else value
