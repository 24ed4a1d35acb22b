"""The Planner role: plans, gives orders to other roles, and answers the user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from injector import inject

from taskweaver.llm.api import LLMApi
from taskweaver.llm.parsing.json_stream import ParsedReply
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.planner.prompt import PlannerPrompt
from taskweaver.role.asking import PostAsking, RefusedReply, RoleModel
from taskweaver.role.compacting import CompactingRoleConfig
from taskweaver.role.correction import tries_so_far
from taskweaver.role.errors import UnusableReply
from taskweaver.role.role import Role, RoleEntry


class PlannerConfig(CompactingRoleConfig):
    """Keys under ``planner.``."""

    def _configure(self) -> None:
        self._set_name("planner")
        prompt_file = self._get_path("prompt_file_path")
        self.prompt_file_path = Path(prompt_file) if prompt_file else None
        self.max_retry_count = self._get_int("max_retry_count")


class Planner(Role):
    """The role that turns a request into a plan and a plan into orders."""

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
        """Compose prompts for these workers, and load the examples they take part in."""
        workers = {alias: role.get_intro for alias, role in peers.items() if role is not self}
        self.prompt = PlannerPrompt(
            self.alias, workers, self.model.translator, self.planner_config.prompt_file_path
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
        view = self.model.view(memory, self.alias)
        tries, most = tries_so_far(view.rounds, self.alias), self.planner_config.max_retry_count
        self._load_examples(memory)
        with self.event_emitter.post(self.alias) as proxy:
            messages = self.prompt.compose(*view, self.examples, self.files.text())
            messages = self.model.with_experiences(messages, memory)
            proxy.update_status("thinking")

            def validate(reply: ParsedReply) -> Post:
                problem = reply.problem or self._problem(proxy.post)
                if problem is not None:
                    raise RefusedReply(problem, self.prompt.revise(problem))
                if proxy.post.send_to == "User" and tries < most:
                    self.model.review(self.answer_review, proxy.post, self.prompt.revise_answer)
                return self._finish(proxy)

            def end(problem: str) -> Post:
                raise UnusableReply(self.alias, f"{tries + 1} replies could not be used: {problem}")

            return PostAsking(
                self.model,
                messages,
                self.prompt.schema,
                proxy,
                "the Planner",
                validate,
                end,
                failed=tries,
                attempts=most + 1,
            ).ask()

    def _problem(self, post: Post) -> str | None:
        """Return the reason why a post cannot be sent; correct the spelling of its receiver."""
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

    def _finish(self, proxy: PostEventProxy) -> Post:
        if proxy.post.send_to != "User":
            plan = self.prompt.shared_plan(proxy.post)
            entry = SharedMemoryEntry(type="plan", content=plan, scope="round")
            proxy.update_attachment(plan, AttachmentType.shared_memory_entry, extra=entry)
        return proxy.end()

    def close(self) -> None:
        """Stop the summaries."""
        self.model.close()
