"""The Planner: plans, hands out steps, and answers the user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from injector import inject

from taskweaver.llm.api import LLMApi
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.planner.prompt import PlannerPrompt
from taskweaver.role.answering import as_list
from taskweaver.role.compacting import CompactingRoleConfig, RoleCompaction
from taskweaver.role.correction import send_back, tries_so_far, with_beginning
from taskweaver.role.errors import UnusableReply
from taskweaver.role.experiences import RoleExperiences
from taskweaver.role.role import Role, RoleEntry
from taskweaver.role.translator import PostTranslator


class PlannerConfig(CompactingRoleConfig):
    """Keys under ``planner.``."""

    def _configure(self) -> None:
        self._set_name("planner")
        prompt_file = self._get_path("prompt_file_path")
        self.prompt_file_path = Path(prompt_file) if prompt_file else None
        self.max_retry_count = self._get_int("max_retry_count")
        self.compaction = self._read_compaction()


class Planner(Role):
    """Turns a request into a plan and a plan into orders."""

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
        self.translator = PostTranslator(logger, tracing, event_emitter)
        self.compaction = RoleCompaction(config.compaction, llm_api, logger, config.llm_alias)
        self.experiences = RoleExperiences(config, llm_api, logger)
        self.bind_peers({})

    def bind_peers(self, peers: Mapping[str, Role]) -> None:
        """Learn the workers, and load the examples they take part in."""
        workers = {alias: role.get_intro for alias, role in peers.items() if role is not self}
        self.prompt = PlannerPrompt(
            self.alias, workers, self.translator, self.planner_config.prompt_file_path
        )
        self._load_examples(None)

    def _load_examples(self, memory: Memory | None) -> None:
        self.role_load_example({self.alias, *self.prompt.recipients}, memory)

    def reply(self, memory: Memory, **_kwargs: object) -> Post:
        """Decide the next step, or answer the user.

        Raises:
            ModelError: If the model cannot be reached.
            UnusableReply: If its replies stay unusable.
        """
        self.compaction.attend(memory, self.alias)
        rounds, summary = memory.get_role_rounds_with_compaction(self.alias)
        tries = tries_so_far(rounds, self.alias)
        self._load_examples(memory)
        with self.event_emitter.post(self.alias) as proxy:
            messages = self.prompt.compose(rounds, summary, self.examples, self.files.text())
            messages = self.experiences.added_to(messages, memory)
            proxy.update_status("thinking")
            chunks = self.llm_api.chat_completion_stream(
                messages,
                llm_alias=self.config.llm_alias,
                json_schema=self.prompt.schema,
                on_status=proxy.update_status,
            )
            reply = self.translator.raw_text_to_post(chunks, proxy)
            problem = reply.problem or self._problem(proxy.post)
            if problem is None:
                doubts = self._doubts(proxy.post, tries)
                if not doubts:
                    return self._finish(proxy)
                revise = self.prompt.revise_answer(as_list(doubts))
                return send_back(proxy, reply.raw, revise, doubts)
            self.logger.warning(f"the Planner's reply cannot be used: {problem}")
            if tries >= self.planner_config.max_retry_count:
                wrong = with_beginning(problem, reply.raw)
                raise UnusableReply(self.alias, f"{tries + 1} replies could not be used: {wrong}")
            return send_back(proxy, reply.raw, self.prompt.revise(problem))

    def _problem(self, post: Post) -> str | None:
        """Say what keeps a post from being sent; mend the receiver's spelling on the way."""
        spelling = {name.lower(): name for name in self.prompt.recipients}
        post.send_to = spelling.get(post.send_to.strip().lower(), post.send_to)
        if post.send_to not in self.prompt.recipients:
            known = ", ".join(self.prompt.recipients)
            return f"send_to is {post.send_to!r}, and must be one of {known}."
        if not post.message.strip():
            return "message is empty."
        needed = (AttachmentType.plan, AttachmentType.current_plan_step)
        missing = [kind.value for kind in needed if not post.get_attachment(kind)]
        if missing and post.send_to != "User":
            return f"{' and '.join(missing)} missing: a worker needs to see the plan."
        return None

    def _doubts(self, post: Post, tries: int) -> list[str]:
        """Return the numbers of an answer to the user that the model is asked to correct."""
        has_room = tries < self.planner_config.max_retry_count
        if self.answer_review is None or post.send_to != "User" or not has_room:
            return []
        can_correct = self.llm_api.takes_corrections(self.config.llm_alias)
        return self.answer_review.doubts(post) if can_correct else []

    def _finish(self, proxy: PostEventProxy) -> Post:
        if proxy.post.send_to != "User":
            plan = self.prompt.shared_plan(proxy.post)
            entry = SharedMemoryEntry(type="plan", content=plan, scope="round")
            proxy.update_attachment(plan, AttachmentType.shared_memory_entry, extra=entry)
        return proxy.end()

    def close(self) -> None:
        """Stop the compactor."""
        self.compaction.stop()
