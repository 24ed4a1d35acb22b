"""The Planner role: writes cells, gives orders to roles, and answers the user."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from injector import inject

from taskweaver.llm.api import LLMApi
from taskweaver.llm.types import ChatMessage, Form
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.cells import has_failed, has_run, ran_code
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.planner.leader_prompt import (
    LeaderPrompt,
    cell_examples,
    has_order_in_words,
    led_examples,
)
from taskweaver.planner.prompt import PlannerPrompt
from taskweaver.role.asking import RefusedReply, RoleModel, RoleQuestion
from taskweaver.role.compacting import CompactingRoleConfig
from taskweaver.role.correction import follows_empty_reply, tries_so_far
from taskweaver.role.errors import UnusableReply
from taskweaver.role.forms.actions import ReplyReading
from taskweaver.role.forms.memory_calls import FactOperation
from taskweaver.role.forms.offer import USER, ActionOffer
from taskweaver.role.forms.values import EMPTY_REPLY
from taskweaver.role.forms.writing import ReplyWriter
from taskweaver.role.prompt import prompt_version
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.role import Role

_ANSWER_NOW = "Answer now."


@runtime_checkable
class CellRunner(Protocol):
    """A role that runs cells that another role wrote."""

    alias: str
    examples: list[Conversation]

    @property
    def language(self) -> str:
        """Language of its cells."""
        ...

    @property
    def has_own_model(self) -> bool:
        """Whether it takes orders in words: a model or texts of its own are configured."""
        ...

    def cell_guide(self, memory: Memory) -> str:
        """Return what an author of cells has to know: the kernel, its rules, its functions."""
        ...


class PlannerConfig(CompactingRoleConfig):
    """Keys under ``planner.``."""

    def _configure(self) -> None:
        self._set_name("planner")
        prompt_file = self._get_path("prompt_file_path")
        self.prompt_file_path = Path(prompt_file) if prompt_file else None
        self.max_retry_count = self._get_int("max_retry_count")
        self.leader_writes_code = self.src.get_bool("session.leader_writes_code")


class Planner(Role):
    """The role that answers a request: by own cells, and by orders to roles."""

    answers_from_outcomes = True

    @inject
    def __init__(
        self,
        config: PlannerConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        llm_api: LLMApi,
        role_entry: RoleEntry,
    ) -> None:
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.planner_config = config
        self.llm_api = llm_api
        self.model = RoleModel(config, logger, event_emitter, llm_api)
        self.bind_peers({})

    def bind_peers(self, peers: Mapping[str, Role]) -> None:
        """Compose prompts for the given roles, and load the shared examples."""
        others = {alias: role for alias, role in peers.items() if role is not self}
        workers = {alias: role.get_intro for alias, role in others.items()}
        path = self.planner_config.prompt_file_path
        self._runner: CellRunner | None = None
        self.prompt: LeaderPrompt | PlannerPrompt
        if path is not None and prompt_version(path) < 2:
            self.prompt = PlannerPrompt(self.alias, workers, path)
        else:
            self._runner = self._runner_of(others)
            self.prompt = LeaderPrompt(self.alias, workers, self._offer(others), path)
        self.model.only_form = self.prompt.only_form
        self._load_examples(None)

    def _runner_of(self, others: Mapping[str, Role]) -> CellRunner | None:
        """Return the role that runs the Planner's cells: the first for Python, else for a shell."""
        if not self.planner_config.leader_writes_code:
            return None
        found = [role for role in others.values() if isinstance(role, CellRunner)]
        runners = [role for role in found if not role.has_own_model]
        return min(runners, key=lambda role: role.language != "python", default=None)

    def _offer(self, others: Mapping[str, Role]) -> ActionOffer:
        runner = self._runner
        language, own = (runner.language, runner.alias) if runner else ("", "")
        return ActionOffer(
            language,
            own,
            tuple(alias for alias in others if alias != own),
            has_plan=True,
            has_memory=True,
            has_branches=runner is not None and self.may_branch,
        )

    def _load_examples(self, memory: Memory | None) -> None:
        self.examples = []
        self.role_load_example({self.alias, *self.prompt.offer.recipients}, memory)
        if self._runner is not None:
            runner = self._runner.alias
            self.examples = led_examples(self.examples, self.alias, runner)
            if has_order_in_words(self.examples, self.alias, runner):
                self.prompt.offer = self.prompt.offer.with_role(runner)
            self.examples += cell_examples(self._runner.examples, self.alias, runner)

    def reply(self, memory: Memory, **_kwargs: object) -> Post:
        """Return the first post of `replies`."""
        return self.replies(memory)[0]

    def replies(self, memory: Memory) -> list[Post]:
        """Decide the next steps, or answer the user.

        Raises:
            ModelError: If the model cannot be reached.
            UnusableReply: If its replies stay unusable.
        """
        view = self.model.view(memory, self.alias)
        tries, most = tries_so_far(view.rounds, self.alias), self.planner_config.max_retry_count
        self._load_examples(memory)
        newest, offer = view.rounds[-1], self.prompt.offer
        has_outcome = ran_code(newest)
        report = next(filter(has_run, reversed(newest.post_list)), None)
        outcome = "" if report is None else report.message
        is_nudged = bool(outcome) and follows_empty_reply(view.rounds, self.alias)

        def take(proxy: PostEventProxy, writer: ReplyWriter, reading: ReplyReading) -> list[Post]:
            if reading.problem == EMPTY_REPLY and is_nudged:
                return [self._report(proxy, outcome)]
            if reading.problem:
                raise RefusedReply(reading.problem)
            draft = writer.draft(reading)
            if draft is not None and tries < most:  # a correction is left
                self.model.review(self.answer_review, draft)
            return [self._finish(post, report) for post in writer.posts(reading)]

        def end(proxy: PostEventProxy, problem: str) -> list[Post]:
            if outcome:
                return [self._report(proxy, outcome)]
            raise UnusableReply(self.alias, f"{tries + 1} replies could not be used: {problem}")

        question = RoleQuestion(
            self.alias,
            "thinking",
            partial(self._messages, memory),
            self.prompt.schema,
            offer,
            offer,
            newest.user_query,
            newest.post_list,
            has_outcome=has_outcome,
            may_call=not is_nudged,
            failed=tries,
            attempts=most + 1,
            revise=self.prompt.revise,
            revise_answer=self.prompt.revise_answer,
            take=take,
            end=end,
            carry_out=self._carry_out,
            is_last=has_outcome and tries >= most,
            nudge=_ANSWER_NOW,
        )
        return self.model.ask(question)

    def _messages(self, memory: Memory, form: Form) -> list[ChatMessage]:
        view = self.model.view(memory, self.alias)
        guide = self._runner.cell_guide(memory) if self._runner is not None else ""
        rounds = memory.conversation.rounds
        request = rounds[-1].user_query
        around = self.situations.around(
            view.rounds,
            rounds,
            self.files,
            lambda: self.long_memory.text(request),
            shows_pictures=self.model.takes("images"),
            guide=guide,
        )
        messages = self.prompt.compose(form, *view, self.examples, around)
        return self.model.experiences.added_to(messages, memory)

    def _carry_out(self, operation: FactOperation) -> str:
        """Do an operation on long-term memory, and return the result."""
        do = {
            "remember": self.long_memory.remember,
            "forget": self.long_memory.forget,
            "recall": self.long_memory.recall,
        }[operation.name]
        return do(operation.text)

    def _report(self, proxy: PostEventProxy, outcome: str) -> Post:
        """Answer with the last outcome, where the model has no words."""
        proxy.update_attachment("TaskFailure", AttachmentType.stop)
        proxy.update_message(
            f"The model gave no answer that can be used. The last outcome:\n\n{outcome}"
        )
        proxy.update_send_to(USER)
        return proxy.end()

    def _finish(self, post: Post, report: Post | None) -> Post:
        """Share the plan of an order with the receiver. Mark an answer after a cell that failed."""
        if post.send_to == USER and report is not None and has_failed(report):
            if not post.get_attachment(AttachmentType.stop):
                post.add_attachment(Attachment.create(AttachmentType.stop, "TaskFailure"))
            return post
        plan = self.prompt.shared_plan(post)
        if plan and post.send_to not in (USER, self.alias):
            entry = SharedMemoryEntry(type="plan", content=plan, scope="round")
            kind = AttachmentType.shared_memory_entry
            post.add_attachment(Attachment.create(kind, plan, extra=entry))
        return post

    def close(self) -> None:
        """Stop the summaries."""
        self.model.close()
