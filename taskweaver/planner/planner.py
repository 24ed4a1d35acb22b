"""The Planner role: writes cells, gives orders to roles, and answers the user."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from injector import inject

from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.types import ChatMessage, Form
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.cells import has_failed, has_run, ran_code
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
from taskweaver.role.asking import PostAsking, RefusedReply, RoleModel
from taskweaver.role.cells import CellRunner
from taskweaver.role.compacting import CompactingRoleConfig
from taskweaver.role.correction import follows_empty_reply, tries_so_far
from taskweaver.role.errors import UnusableReply
from taskweaver.role.forms.actions import ModelReply
from taskweaver.role.forms.fences import Asked, told
from taskweaver.role.forms.kept_replies import refused_reply
from taskweaver.role.forms.memory_calls import DoneOperation, FactOperation
from taskweaver.role.forms.offer import USER, ActionOffer
from taskweaver.role.forms.reading import last_words, read_reply
from taskweaver.role.forms.values import EMPTY_REPLY
from taskweaver.role.forms.writing import ReplyWriter
from taskweaver.role.prompt import prompt_version
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.role import Role

_ANSWER_NOW = "Answer now."


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
        self.model = RoleModel(config, logger, tracing, event_emitter, llm_api)
        self.bind_peers({})

    def bind_peers(self, peers: Mapping[str, Role]) -> None:
        """Compose prompts for the given roles, and load the shared examples."""
        others = {alias: role for alias, role in peers.items() if role is not self}
        workers = {alias: role.get_intro for alias, role in others.items()}
        path = self.planner_config.prompt_file_path
        self._runner: CellRunner | None = None
        self.prompt: LeaderPrompt | PlannerPrompt
        if path is not None and prompt_version(path) < 2:
            self.prompt = PlannerPrompt(self.alias, workers, self.model.translator, path)
        else:
            self._runner = self._runner_of(others)
            self.prompt = LeaderPrompt(self.alias, workers, self._offer(others), path)
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
            has_memory=self.long_memory.is_kept,
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
        while True:
            form = self._form
            try:
                return self._replies(memory, form)
            except ModelError as error:
                if error.kind != "form" or self._form == form:
                    raise

    @property
    def _form(self) -> Form:
        return self.prompt.only_form or self.model.form

    def _replies(self, memory: Memory, form: Form) -> list[Post]:
        view = self.model.view(memory, self.alias)
        tries, most = tries_so_far(view.rounds, self.alias), self.planner_config.max_retry_count
        self._load_examples(memory)
        with self.event_emitter.post(self.alias) as proxy:
            compose = partial(self._messages, memory, form)
            proxy.update_status("thinking")
            offer = self.prompt.offer
            newest = view.rounds[-1]
            is_answer = ran_code(newest) or (form == "tools" and self.model.takes("tools"))
            asked = Asked(form, newest.user_query, is_answer, told(newest.post_list))
            report = next(filter(has_run, reversed(newest.post_list)), None)
            outcome = "" if report is None else report.message
            is_nudged = bool(outcome) and follows_empty_reply(view.rounds, self.alias)
            writer = ReplyWriter(self.event_emitter, proxy, offer, self._carry_out)

            def stream() -> ModelReply:
                schema = self.prompt.schema if form == "json" else None
                tools = offer.tools() if form == "tools" else []
                may_call = not is_nudged
                return writer.read(
                    self.model.chunks(compose, tools, schema, proxy, may_call=may_call)
                )

            def validate(reply: ModelReply) -> list[Post]:
                reading = read_reply(reply, offer, asked)
                if reading.problem and tries >= most and ran_code(newest):
                    reading = last_words(reply) or reading
                self.model.note_form(form, reading)
                is_empty = reading.problem == EMPTY_REPLY
                if is_empty and is_nudged:
                    return [self._report(proxy, outcome)]
                if reading.problem:
                    problem = f"{reading.problem} {_ANSWER_NOW}" if is_empty else reading.problem
                    revise = self.prompt.revise(form, problem)
                    kept = refused_reply(reply.calls, reply.record, revise)
                    raise RefusedReply(reading.problem, revise, reply=kept)
                self._review(writer.draft(reading), tries)
                posts = writer.posts(reading)
                self._review(posts[0], tries)
                return [self._finish(post, report) for post in posts]

            def end(problem: str) -> list[Post]:
                if outcome:
                    return [self._report(proxy, outcome)]
                raise UnusableReply(self.alias, f"{tries + 1} replies could not be used: {problem}")

            answer = PostAsking(
                self.logger, stream, proxy, "the Planner", validate, end, tries, most + 1
            ).ask()
            return [answer] if isinstance(answer, Post) else answer

    def _review(self, post: Post | None, tries: int) -> None:
        """Check an answer to the user, as long as corrections are left.

        Raises:
            RefusedReply: If numbers of it stand in no outcome.
        """
        may_correct = tries < self.planner_config.max_retry_count
        if post is not None and post.send_to == USER and may_correct:
            self.model.review(self.answer_review, post, self.prompt.revise_answer)

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
        return self.model.with_experiences(messages, memory)

    def _carry_out(self, operation: FactOperation) -> DoneOperation:
        """Do an operation on long-term memory."""
        do = {
            "remember": self.long_memory.remember,
            "forget": self.long_memory.forget,
            "recall": self.long_memory.recall,
        }[operation.name]
        return DoneOperation(operation.name, operation.text, do(operation.text))

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
