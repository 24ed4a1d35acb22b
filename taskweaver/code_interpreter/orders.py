"""Orders in words: the cells one after another, and the prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from taskweaver.code_interpreter.prompt import FURTHER_TEXTS, CodeTexts, PromptInput
from taskweaver.llm.types import ChatMessage, Form, format_chat_message
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import has_run, variables_after
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.role.correction import task_of, tries_so_far
from taskweaver.role.files import PicturesOf, no_pictures
from taskweaver.role.forms.history import (
    History,
    answer_in_words,
    cell_in,
    correction,
    image_parts,
    numbered,
    with_images,
    with_news,
)
from taskweaver.role.forms.offer import USER, ActionOffer
from taskweaver.role.prompt import (
    ComposedRounds,
    example_messages,
    load_prompt,
    with_start,
    with_tail,
)
from taskweaver.role.situation import variables_text
from taskweaver.utils.markup.quoting import quoted_section
from taskweaver.utils.text import fenced, paragraphs, shorten

MOST_CELLS = 8
"""Most cells that run for one order, those that failed included."""

_SAME_CELLS = 3
"""Cells in a row with the same code and outcome that end an order."""

_EARLIER_CHARS = 6_000


@dataclass(frozen=True, slots=True)
class OrderProgress:
    """An order, and the later posts of the receiver to the receiver.

    Attributes:
        task: The order.
        notes: The posts, the oldest first.
        tries: Number of corrections among them.
    """

    task: Post
    notes: tuple[Post, ...]
    tries: int

    @property
    def cells(self) -> list[Post]:
        """The posts whose cells ran."""
        return [post for post in self.notes if has_run(post)]

    @property
    def room(self) -> int:
        """Number of cells that may still run."""
        return MOST_CELLS - len(self.cells)

    @property
    def must_answer(self) -> bool:
        """Whether the order ends with the next reply, which is one in words.

        After the last cell, after cells that all do the same, and after an empty reply to an
        outcome.
        """
        cells = self.cells
        if self.room <= 0 or repeats(cells) >= _SAME_CELLS:
            return True
        invalid = self.notes[-1].get_attachment(AttachmentType.invalid_response) if cells else []
        return bool(invalid) and not str(invalid[-1].content).strip()


def progress_of(rounds: Sequence[Round], alias: str) -> OrderProgress | None:
    """Return the state of the newest order of a role, or None if there is no order."""
    task = task_of(rounds, alias)
    if task is None:
        return None
    posts = reversed(rounds[-1].post_list)
    notes = list(takewhile(lambda post: post.send_from == post.send_to == alias, posts))
    return OrderProgress(task, tuple(reversed(notes)), tries_so_far(rounds, alias))


def repeats(cells: Sequence[Post]) -> int:
    """Count the newest cells that have the same code and the same outcome."""
    newest = _gist(cells[-1]) if cells else None
    return sum(1 for _ in takewhile(lambda post: _gist(post) == newest, reversed(cells)))


def earlier_outcomes(cells: Sequence[Post]) -> str:
    """Return cells of an order, at least one, with outcomes, bounded, for the report.

    Failed ones are left out where a later one succeeded.
    """
    shown = [
        post
        for at, post in enumerate(cells)
        if post.text(AttachmentType.execution_status) == "SUCCESS" or at == len(cells) - 1
    ]
    limit_chars = _EARLIER_CHARS // len(shown)
    parts = []
    for number, post in enumerate(shown, start=1):
        code = fenced(post.text(AttachmentType.reply_content), "python")
        result = post.text(AttachmentType.execution_result)
        text = shorten(f"{code}\n\n{result}", limit_chars)
        parts.append(f"## Cell {number}\n{text}")
    return "\n\n".join(parts)


def _gist(post: Post) -> tuple[str, str]:
    code = post.text(AttachmentType.reply_content)
    return code, post.text(AttachmentType.execution_result)


PROMPT_FILE = Path(__file__).with_name("code_generator_prompt.yaml")
_TEXTS = (
    "instruction", "for_user", "for_role", "reply_tools", "reply_json", "reply_fences",
    "last_tools", "last_json", "last_fences", "plugins", "feedback", "request", "plan", "task",
    "correction", "go_on", "repeated", "answer_now", "revise_tools", "revise_json",
    "revise_fences", "revise_failure",
)  # fmt: skip
_VARIABLES_CHARS = 2_000


class OrderPrompt(CodeTexts):
    """Composes prompts of version 2."""

    def __init__(
        self, alias: str, role_name: str, path: Path | None, variants: Sequence[Path] = ()
    ) -> None:
        """Load the texts. See `CodeTexts`.

        Raises:
            ConfigError: If a file cannot be read or lacks a text.
        """
        packaged = load_prompt(PROMPT_FILE, FURTHER_TEXTS)
        texts = load_prompt(path or PROMPT_FILE, _TEXTS, packaged)
        super().__init__(alias, role_name, texts, variants)
        self._past: dict[Form, ComposedRounds] = {}

    def schema(self, offer: ActionOffer) -> dict[str, object]:
        """Return the JSON schema of a reply."""
        return offer.schema()

    def compose(self, given: PromptInput) -> list[ChatMessage]:
        """Return the whole prompt: instructions, examples, rounds."""
        around, known = given.around, self._past.setdefault(given.form, ComposedRounds())

        def composed(round_: Round, previous: Round | None) -> list[ChatMessage]:
            newest = (given, around.pictures) if round_ in given.rounds[-1:] else ()
            texts = _RoundTexts(self, round_, previous, around.news, *newest)
            return self._messages(given.form, texts)

        live = known.messages(given.rounds, composed, around.heads)
        messages = [
            format_chat_message("system", self._instructions(given)),
            *example_messages(given.examples, composed),
            *with_start(live, compaction=given.compaction),
        ]
        if given.must_answer:
            messages[-1] = with_tail(messages[-1], self._texts["answer_now"])
        return numbered(messages)

    def revise(self, form: Form, problem: str) -> str:
        """Return the request to correct an unusable reply."""
        return self.text(f"revise_{form}", PROBLEM=problem)

    def _instructions(self, given: PromptInput) -> str:
        offer, form = given.offer, given.form
        is_users = offer.asker == USER
        last = self.text(f"last_{form}", ASKER=offer.asker, LANGUAGE=offer.language)
        rules = self.text(
            f"reply_{form}",
            RUN_TOOL=offer.run_tool,
            LANGUAGE=offer.language,
            ASKER="the user" if is_users else offer.asker,
            FIELDS=", ".join(f'"{name}": "..."' for name in offer.fields),
            LAST=last if offer.has_last else "",
        )
        text = self.text(
            "instruction",
            ROLE_NAME=self._role_name,
            SERVES=self._texts["for_user" if is_users else "for_role"],
            REPLY=rules.replace("\n\n", "\n"),
        )
        return paragraphs(text, self.limits, self.plugins_text(given.plugins))

    def _messages(self, form: Form, texts: _RoundTexts) -> list[ChatMessage]:
        """Return the messages of a round."""
        round_, previous, given = texts.round, texts.previous, texts.given
        if form == "tools":
            kinds = [post.text(AttachmentType.reply_type) for post in round_.post_list]
            past = "bash" if "bash" in kinds else "python"
            language = given.offer.language if given else past
            history = History(
                self._alias, form, "", language, texts.pictures, texts.news, orders=texts
            )
            return history.messages(round_.post_list)
        messages: list[ChatMessage] = []
        feedback = texts.feedback(previous.post_list[-1]) if previous else ""
        for post in round_.post_list:
            if post.send_from == self._alias:
                messages.append(self._own(form, post))
                feedback = texts.feedback(post)
            if post.send_to == self._alias:
                shown = texts.note(post) if post.send_from == self._alias else texts.order(post)
                parts = [self.text("feedback", FEEDBACK=feedback)] if feedback else []
                message = format_chat_message("user", "\n\n".join([*parts, shown]))
                messages.append(with_images(message, image_parts(post, texts.pictures)))
                feedback = ""
        return messages

    def _own(self, form: Form, post: Post) -> ChatMessage:
        """Return a past reply of the role, in JSON or with fences."""
        if post.get_attachment(AttachmentType.invalid_response):
            return next(correction(post))
        thought, code = post.text(AttachmentType.thought), cell_in(post)
        words = "" if code else answer_in_words(post) or post.message
        is_last = post.send_to != self._alias
        if form == "fences":
            language = post.text(AttachmentType.reply_type)
            info = f"{language} last" if is_last and post.send_to != USER else language
            text = paragraphs(thought, fenced(code, info) if code else words)
            return format_chat_message("assistant", text)
        fields = {"thought": thought, "message": words, "code": code}
        if code and post.send_to != USER:
            fields["is_last"] = "yes" if is_last else "no"
        used = {name: text for name, text in fields.items() if text}
        return format_chat_message("assistant", json.dumps({"response": used}, ensure_ascii=False))


@dataclass
class _RoundTexts:
    """Texts of the orders and outcomes of one round, for the role's own model."""

    prompt: OrderPrompt
    round: Round
    previous: Round | None
    news: Mapping[str, str]
    given: PromptInput | None = None
    pictures: PicturesOf = no_pictures
    _variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen = variables_after(reversed(self.previous.post_list)) if self.previous else {}
        for post in self.round.post_list:
            now = variables_after([post])
            changed = [(name, text) for name, text in now.items() if seen.get(name) != text]
            self._variables[post.id] = variables_text(changed, _VARIABLES_CHARS)
            seen = now or seen

    def order(self, post: Post) -> str:
        """Return the text of an order. The newest stands behind the request and the plan."""
        text = self.prompt.task(post)
        if self.given is None or post.id != self.given.task.id:
            return text
        return "\n\n".join([*self.prompt.context(self.given), text])

    def note(self, post: Post) -> str:
        """Return the request that a post of the role to itself stands for."""
        text = post.text(AttachmentType.revise_message)
        if text:
            return self.prompt.text("correction", CORRECTION=quoted_section(text))
        return self.prompt.text("go_on")

    def feedback(self, post: Post) -> str:
        """Return the outcome of a reply: the run, and the changed variables."""
        result, variables = post.text(AttachmentType.execution_result), self._variables.get(post.id)
        shown = f"### Variables\n{variables}" if variables else ""
        return with_news(paragraphs(result, shown, self._repeated(post)), post, self.news)

    def outcome(self, post: Post) -> str:
        """Return the result of the call that a post of the role stands for, or an empty text."""
        if not cell_in(post):
            return ""
        revise = post.text(AttachmentType.revise_message)
        words = "" if has_run(post) or revise else post.message
        return paragraphs(self.feedback(post), revise, words) or "(no outcome)"

    def _repeated(self, post: Post) -> str:
        """Return the note below the outcome of a cell that ran before with the same outcome."""
        posts = self.round.post_list
        at = next((at for at, item in enumerate(posts) if item is post), -1)
        cells = [item for item in posts[: at + 1] if has_run(item)]
        is_repeated = has_run(post) and repeats(cells) > 1
        return self.prompt.text("repeated") if is_repeated else ""
