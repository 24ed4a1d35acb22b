"""Prompts of version 1 of a CodeInterpreter: replies in JSON, and one cell an order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.llm.types import ChatMessage, Form, format_chat_message
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.summaries import CompactedMessage
from taskweaver.plugin.spec import PluginEntry
from taskweaver.role.forms.offer import ActionOffer
from taskweaver.role.original_prompt import OriginalPrompt
from taskweaver.role.prompt import (
    ComposedRounds,
    example_messages,
    load_prompt,
    reply_schema,
    with_start,
)
from taskweaver.role.situation import Surroundings, variables_text
from taskweaver.role.translator import PostTranslator
from taskweaver.utils.markup.quoting import quoted_section
from taskweaver.utils.text import fill, paragraphs, remove_temporal_delimiters

_LIBRARIES = (
    "scipy", "sklearn", "statsmodels", "seaborn", "plotly", "polars", "pyarrow", "duckdb",
    "openpyxl", "sqlalchemy", "networkx", "sympy", "xgboost", "lightgbm", "torch", "tensorflow",
    "jax", "transformers", "requests", "bs4",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Facts on the kernel in words, empty for an unknown kernel."""

    text: str = ""


def local_kernel_facts(policy: SandboxPolicy | None) -> KernelFacts:
    """Return the facts on kernels of this installation, with or without a sandbox."""
    found = [name for name in _LIBRARIES if find_spec(name) is not None]
    network = policy.network if policy else "the network of this machine"
    return KernelFacts(f"Installed too: {', '.join(found) or 'nothing'}. Code has {network}.")


PROMPT_FILE = Path(__file__).with_name("code_generator_prompt_version_1.yaml")
_TEXTS = (
    "instruction", "plugins", "feedback", "request", "plan", "task", "correction", "requirements",
    "revise_reply", "revise_failure",
)  # fmt: skip
FURTHER_TEXTS = (
    "policy", "revise_refused", "revise_masked", "declined", "revise_answer", "cells",
)  # fmt: skip
_ORIGINAL = OriginalPrompt(
    PROMPT_FILE,
    {"instruction": "content", "requirements": "requirements"},
    {
        "ENVIRONMENT_CONTEXT": "- Your code runs in a live Jupyter kernel.",
        "ROLE_NAME": "{ROLE_NAME}",
        "CODE_GENERATION_REQUIREMENTS": "",
    },
)
_OWN_FIELDS = {AttachmentType.thought, AttachmentType.reply_type, AttachmentType.reply_content}
_NOT_OWN_FIELDS = frozenset(AttachmentType) - _OWN_FIELDS


@dataclass(frozen=True, slots=True)
class PromptInput:
    """The content of one prompt.

    Attributes:
        rounds: The rounds that it shows in full.
        compaction: Summary of the rounds before them.
        examples: Example conversations.
        plugins: The functions that cells may call.
        request: Request of the user; empty where the task is the user's own words.
        plans: Plans of the other roles.
        around: The situation, and the pictures that are shown.
        task: The newest order.
        form: The form of replies.
        offer: The actions of any reply to the order.
        must_answer: Whether the next reply is an answer in words.
    """

    rounds: Sequence[Round]
    compaction: CompactedMessage | None
    examples: Sequence[Conversation]
    plugins: Sequence[PluginEntry]
    request: str
    plans: Sequence[str]
    around: Surroundings
    task: Post
    form: Form
    offer: ActionOffer
    must_answer: bool


class CodeTexts:
    """Texts of a prompt file of either version.

    Attributes:
        limits: Facts on the kernel and limits of code, in words; empty for none.
        only_form: The only form of replies that the texts describe; None for all.
    """

    only_form: Form | None = None

    def __init__(
        self, alias: str, role_name: str, texts: dict[str, str], variants: Sequence[Path]
    ) -> None:
        """Take texts. Texts of `variants` go before, the last before all.

        Raises:
            ConfigError: If a file cannot be read or lacks instructions.
        """
        for variant in variants:
            texts = load_prompt(variant, ("instruction",), texts)
        self._texts = texts
        self.limits = ""
        self._alias = alias
        self._role_name = role_name

    def cell_guide(self, plugins: Sequence[PluginEntry]) -> str:
        """Return the facts for the author of a cell: the kernel, the policy, the functions."""
        return paragraphs(self._texts["cells"], self.limits, self.plugins_text(plugins))

    def plugins_text(self, plugins: Sequence[PluginEntry]) -> str:
        """Return the section on plugins, or an empty text for no plugins.

        Its text places a line on each, or stubs in full where nothing else can be called.
        """
        lines = "\n".join(entry.spec.format_line() for entry in plugins)
        stubs = "\n\n".join(entry.format_prompt() for entry in plugins)
        return self.text("plugins", PLUGIN_LINES=lines, PLUGINS=stubs) if plugins else ""

    def text(self, name: str, **values: str) -> str:
        """Return one of the prompt file's texts, filled."""
        return fill(self._texts[name], **values)

    def revise_answer(self, numbers: str) -> str:
        """Return the request to correct numbers of an answer that stand in no result."""
        return self.text("revise_answer", NUMBERS=numbers)

    def context(self, given: PromptInput) -> list[str]:
        """Return the sections before the newest order: the request, and the plans."""
        request = quoted_section(given.request)
        parts = [self.text("request", REQUEST=request)] if request else []
        return parts + [self.text("plan", PLAN=quoted_section(plan)) for plan in given.plans]

    def task(self, post: Post) -> str:
        """Return the text of an order."""
        return self.text("task", TASK=quoted_section(remove_temporal_delimiters(post.message)))


class CodePrompt(CodeTexts):
    """Composes the prompts of the code model, of version 1."""

    only_form: Form | None = "json"

    def __init__(
        self,
        alias: str,
        role_name: str,
        path: Path | None,
        variants: Sequence[Path] = (),
        language: str = "python",
    ) -> None:
        """Load the texts. See `CodeTexts`.

        Raises:
            ConfigError: If a file cannot be read or lacks a text.
        """
        packaged = load_prompt(PROMPT_FILE, FURTHER_TEXTS)
        texts = load_prompt(path or PROMPT_FILE, _TEXTS, packaged, _ORIGINAL)
        super().__init__(alias, role_name, texts, variants)
        self._past = ComposedRounds()
        self._schema = reply_schema(
            {"thought": {}, "reply_type": {"enum": [language, "text"]}, "reply_content": {}}
        )

    def schema(self, _offer: ActionOffer) -> dict[str, object]:
        """Return the JSON schema of a reply."""
        return self._schema

    def compose(self, given: PromptInput) -> list[ChatMessage]:
        """Return the whole prompt: instructions, examples, files, plugins, rounds."""

        def composed(round_: Round, previous: Round | None) -> list[ChatMessage]:
            is_newest = round_ in given.rounds[-1:]
            return self._round_messages(round_, previous, given if is_newest else None)

        live = self._past.messages(given.rounds, composed, given.around.heads)
        if given.plugins and live:
            text = f"{self.plugins_text(given.plugins)}\n\n{live[0]['content']}"
            live = [format_chat_message(live[0]["role"], text), *live[1:]]
        return [
            format_chat_message("system", self.text("instruction", ROLE_NAME=self._role_name)),
            *example_messages(given.examples, self._round_messages),
            *with_start(live, compaction=given.compaction),
        ]

    def revise(self, _form: Form, problem: str) -> str:
        """Return the request to correct an unusable reply."""
        return self.text("revise_reply", PROBLEM=problem)

    def _round_messages(
        self, round_: Round, previous: Round | None, given: PromptInput | None = None
    ) -> list[ChatMessage]:
        messages: list[ChatMessage] = []
        feedback = self._feedback(previous.post_list[-1]) if previous else ""
        for post in round_.post_list:
            is_last = post is round_.post_list[-1]
            if post.send_from == self._alias:
                messages.append(format_chat_message("assistant", self._own_reply(post)))
                feedback = self._feedback(post)
            if post.send_to == self._alias:
                text = self._user_turn(post, feedback, given if is_last else None)
                messages.append(format_chat_message("user", text))
                feedback = ""
        return messages

    def _user_turn(self, post: Post, feedback: str, given: PromptInput | None) -> str:
        parts = [self.text("feedback", FEEDBACK=feedback)] if feedback else []
        if given is not None:
            parts += self.context(given)
        if post.send_from == self._alias:
            text = post.text(AttachmentType.revise_message)
            parts.append(self.text("correction", CORRECTION=quoted_section(text)))
        else:
            parts.append(self.task(post))
        if given is not None:
            parts += [self.limits] if self.limits else []
            parts.append(self.text("requirements", ROLE_NAME=self._role_name))
        return "\n\n".join(parts)

    def _own_reply(self, post: Post) -> str:
        invalid = post.get_attachment(AttachmentType.invalid_response)
        if invalid:
            return str(invalid[0].content)
        return PostTranslator.post_to_raw_text(
            post, if_format_message=False, if_format_send_to=False, ignored_types=_NOT_OWN_FIELDS
        )

    def _feedback(self, post: Post) -> str:
        """Return the outcome of a reply: the run and the variables afterwards."""
        result = post.text(AttachmentType.execution_result)
        parts = [result] if result else []
        stored = post.text(AttachmentType.session_variables)
        variables = (
            variables_text((str(n), str(v)) for n, v in json.loads(stored)) if stored else ""
        )
        parts += [f"### Variables\n{variables}"] if variables else []
        return "\n\n".join(parts)
