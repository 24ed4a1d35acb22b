"""The prompts of a Planner that acts by calls, JSON or fences, in the form in force.

Examples are shown as a Planner that writes cells itself would have held them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from taskweaver.llm.types import ChatMessage, Form, format_chat_message
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.summaries import CompactedMessage
from taskweaver.role.files import no_pictures
from taskweaver.role.forms.history import History, numbered
from taskweaver.role.forms.memory_calls import OPERATIONS
from taskweaver.role.forms.offer import USER, ActionOffer
from taskweaver.role.prompt import (
    ComposedRounds,
    example_messages,
    load_prompt,
    with_start,
)
from taskweaver.role.situation import Surroundings
from taskweaver.utils.markup.quoting import quoted
from taskweaver.utils.text import fill

_CODE = re.compile(r"\A## Code\n(?P<mark>`{3,})python\n(?P<code>.*?)\n(?P=mark)\n+", re.DOTALL)
_KEPT = (AttachmentType.thought, AttachmentType.plan)


def led_examples(examples: Sequence[Conversation], leader: str, runner: str) -> list[Conversation]:
    """Return examples in which the leader's orders to a runner of cells carry the cells.

    An order whose cell is not recorded stays one in words.
    """
    return _rewritten(examples, lambda posts: _led(posts, leader, runner))


def cell_examples(examples: Sequence[Conversation], leader: str, runner: str) -> list[Conversation]:
    """Return examples of a runner's own model as a leader's, to whom the user gives the orders."""
    return _rewritten(examples, lambda posts: _asked(posts, leader, runner))


def _rewritten(
    examples: Sequence[Conversation], rewrite: Callable[[Sequence[Post]], Iterator[Post]]
) -> list[Conversation]:
    return [
        replace(
            example,
            rounds=[
                replace(round_, post_list=list(rewrite(round_.post_list)))
                for round_ in example.rounds
            ],
        )
        for example in examples
    ]


def has_order_in_words(examples: Sequence[Conversation], leader: str, runner: str) -> bool:
    """Return whether the leader gives the runner an order without a cell in an example."""
    posts = (post for example in examples for round_ in example.rounds for post in round_.post_list)
    return any(_is_order(post, leader, runner) and not _code(post) for post in posts)


def _led(posts: Sequence[Post], leader: str, runner: str) -> Iterator[Post]:
    """Yield the posts, with each cell moved from the report to the order."""
    reports = iter([post for post in posts if post.send_from == runner])
    for post in posts:
        if _is_order(post, leader, runner):
            report = next(reports, None)
            kept = [item for item in post.attachment_list if item.type in _KEPT]
            yield replace(post, attachment_list=[*kept, *_cell(report)])
        elif post.send_from == runner:
            yield replace(post, message=_CODE.sub("", post.message, count=1))
        else:
            yield post


def _asked(posts: Sequence[Post], leader: str, runner: str) -> Iterator[Post]:
    """Yield the posts, with an order to the leader in place of each to the runner."""
    for post in posts:
        if post.send_from != runner:
            yield replace(post, send_from=USER, send_to=leader)
        elif post.last(AttachmentType.reply_type) == "text" or not _code(post):
            yield replace(post, send_from=leader, send_to=USER)
        else:
            thoughts = post.get_attachment(AttachmentType.thought)
            outcome = post.text(AttachmentType.execution_result)
            words = post.text(AttachmentType.thought)
            yield Post.create(words, leader, runner, [*thoughts, *_cell(post)])
            yield Post.create(outcome or _CODE.sub("", post.message), runner, leader)


def _cell(report: Post | None) -> list[Attachment]:
    """Return the cell of a report, from the attachments or else from the text."""
    if report is None:
        return []
    match = _CODE.match(report.message)
    code = _code(report) or (match["code"] if match else "")
    if not code:
        return []
    kinds = {AttachmentType.reply_type: "python", AttachmentType.reply_content: code}
    return [Attachment.create(kind, text) for kind, text in kinds.items()]


def _is_order(post: Post, leader: str, runner: str) -> bool:
    return post.send_from == leader and post.send_to == runner


def _code(post: Post) -> str:
    return post.last(AttachmentType.reply_content)


PROMPT_FILE = Path(__file__).with_name("planner_prompt.yaml")
_TEXTS = (
    "instruction", "cells", "workers", "role", "reply_tools", "reply_json", "reply_fences",
    "json_code", "fences_code", "fences_ask", "incoming", "shared_plan",
    "revise_tools", "revise_json", "revise_fences", "revise_answer",
)  # fmt: skip
_PACKAGED_TEXTS = ("json_memory", "fences_memory", "json_alternatives", "fences_alternatives")


class LeaderPrompt:
    """Composes prompts of version 2.

    Attributes:
        offer: The actions that replies may hold.
        schema: JSON schema of replies in JSON.
    """

    only_form: Form | None = None

    def __init__(
        self,
        alias: str,
        workers: Mapping[str, Callable[[], str]],
        offer: ActionOffer,
        path: Path | None,
    ) -> None:
        """Read the texts.

        Args:
            alias: Alias of the Planner.
            workers: Functions that return the description of each role, by alias.
            offer: The actions that replies may hold.
            path: The prompt file; None takes the packaged one.

        Raises:
            ConfigError: If the file cannot be read or lacks a text.
        """
        packaged = load_prompt(PROMPT_FILE, _PACKAGED_TEXTS)
        self._texts = load_prompt(path or PROMPT_FILE, _TEXTS, packaged)
        self._alias = alias
        self._workers = workers
        self.offer = offer
        self.schema = offer.schema()
        self._past: dict[Form, ComposedRounds] = {}

    def compose(
        self,
        form: Form,
        rounds: Sequence[Round],
        compaction: CompactedMessage | None,
        examples: Sequence[Conversation],
        around: Surroundings,
    ) -> list[ChatMessage]:
        """Return the whole prompt: instructions, examples, rounds, and the situation.

        Args:
            form: The form of replies.
            rounds: The rounds that it shows in full.
            compaction: Summary of the rounds before them.
            examples: Example conversations.
            around: Guide, situation and pictures.
        """
        language, incoming = self.offer.language or "python", self._texts["incoming"]

        def composed(round_: Round, _previous: Round | None) -> list[ChatMessage]:
            shown = around.pictures if round_ in rounds[-1:] else no_pictures
            history = History(self._alias, form, incoming, language, shown, around.news)
            return history.messages(round_.post_list)

        known = self._past.setdefault(form, ComposedRounds())
        live = known.messages(rounds, composed, around.heads)
        start = with_start(live, compaction=compaction)
        chat = numbered([*example_messages(examples, composed), *start])
        return [format_chat_message("system", self._instructions(form, around.guide)), *chat]

    def shared_plan(self, post: Post) -> str:
        """Return the plan for the rest of the roles, or an empty text."""
        plan = post.last(AttachmentType.plan)
        return fill(self._texts["shared_plan"], PLAN=plan) if plan else ""

    def revise(self, form: Form, problem: str) -> str:
        """Return the request to correct an unusable reply."""
        return fill(self._texts[f"revise_{form}"], PROBLEM=problem)

    def revise_answer(self, numbers: str) -> str:
        """Return the request to correct numbers of an answer that stand in no outcome."""
        return fill(self._texts["revise_answer"], NUMBERS=numbers)

    def _instructions(self, form: Form, guide: str) -> str:
        asked = {name: intro for name, intro in self._workers.items() if name in self.offer.roles}
        roles = [
            fill(self._texts["role"], ALIAS=alias, INTRO=quoted(intro()))
            for alias, intro in asked.items()
        ]
        text = fill(
            self._texts["instruction"],
            WORKERS=fill(self._texts["workers"], ROLES="\n".join(roles)) if roles else "",
            CELLS=fill(self._texts["cells"], GUIDE=guide) if guide else "",
            REPLY=self._reply_rules(form),
            DATE=date.today().isoformat(),  # noqa: DTZ011 - the user's own day is meant
        )
        lines = text.splitlines()  # with single empty lines: places may be empty
        pairs = zip(["x", *lines], lines, strict=False)
        return "\n".join(line for before, line in pairs if before or line)

    def _reply_rules(self, form: Form) -> str:
        rules = self._texts[f"reply_{form}"]
        if form == "tools":
            return rules
        code = ""
        if self.offer.language:
            text = self._texts[f"{form}_code"]
            code = fill(text, LANGUAGE=self.offer.language, RUNNER=self.offer.runner)
        ask = self._texts["fences_ask"] if form == "fences" and self.offer.roles else ""
        fields = ", ".join(f'"{name}": "..."' for name in self.offer.fields)
        memory = ""
        if self.offer.has_memory:
            told = (f"- {name}: {text}" for name, (_, text) in OPERATIONS.items())
            memory = fill(self._texts[f"{form}_memory"], OPERATIONS="\n".join(told))
        branches = self._texts[f"{form}_alternatives"] if self.offer.has_branches else ""
        acting = "\n".join(filter(None, [code, ask, branches, memory]))
        return fill(rules, ACTING=acting, FIELDS=fields).replace("\n\n", "\n")
