"""The work on one node: the state of the node, and the means of the roles."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import ChatMessage, Chunk
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.protocol.audit import MemoryPromptLog
from taskweaver.memory.branched.rounds import NodeMemory
from taskweaver.module.event_emitter import PostEventProxy
from taskweaver.treesearch.agent.asking import SearchAgent
from taskweaver.treesearch.agent.board import board, shown_ids
from taskweaver.treesearch.agent.events import NodeEvents, shown_elsewhere
from taskweaver.treesearch.agent.phase0 import Phase0Plan
from taskweaver.treesearch.agent.run_meter import cost_of
from taskweaver.treesearch.engine.bench import PhaseBench, WorkCancelled
from taskweaver.treesearch.engine.run_parts import RunParts
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.model.node import Cost, Node, NodeError
from taskweaver.treesearch.model.stages import StageState

_PIECE_S = 0.25
_PIECE_CHARS = 4_000
"""Most characters of output that are shown at a time, the newest; the logs have the others."""


class _Pieces:
    """Growing text, shown in pieces at least `_PIECE_S` apart."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show, self._text, self._shown_at = show, "", 0.0

    def add(self, text: str = "") -> None:
        """Add text. Without an argument, show the text that is not shown yet."""
        self._text += text
        if self._text and (not text or time.monotonic() - self._shown_at >= _PIECE_S):
            self._show(self._text)
            self._text, self._shown_at = "", time.monotonic()


class _WatchedApi(LLMApi):
    """Way to the models that shows each reply, as it streams, as the draft of a post's message."""

    def __init__(self, services: ModelServices, post: Callable[[], PostEventProxy | None]) -> None:
        super().__init__(services)
        self._post = post

    def stream_chunks(self, messages: Sequence[ChatMessage], **options: Any) -> Generator[Chunk]:
        """Ask a model, see `LLMApi.stream_chunks`."""
        pieces = self._draft()
        with closing(super().stream_chunks(messages, **options)) as chunks:
            for chunk in chunks:
                if chunk.begins_again:
                    pieces = self._draft()
                pieces.add(chunk.text)
                yield chunk
        pieces.add()

    def _draft(self) -> _Pieces:
        post = self._post()
        if post is None:
            return _Pieces(str)
        post.restart_message()
        return _Pieces(partial(post.update_message, is_end=False))


class NodeAttempt:
    """The work on one node.

    Attributes:
        run: Parts of the run.
        state: Stage of the run; None for a node that has ended.
        node: The node so far.
        parent: Parent of the node; None for a draft.
        plan: Plan of Phase 0, if there is one.
        result: Outcome of the execution; None before.
        places: Files of the node.
        api: Way to the models.
        events: Writes the conversation and the events of the node.
        bench: Carries the proposal out.
        output: Output of the proposal, which is shown as it comes.
    """

    def __init__(self, run: RunParts, node: Node, state: StageState | None = None) -> None:
        """Prepare to work on a node.

        Without a stage, questions have no memory: what they would write came too late for children
        that began.
        """
        self.run, self.state = run, state
        self.parent = run.journal[node.parent] if node.parent else None
        scripts = run.scripts
        if state is not None and self.parent is not None and scripts is not None:
            node = replace(node, line=scripts.line(node, self.parent))
        self.node = node
        self.plan: Phase0Plan | None = None
        self.result: JobResult | None = None
        self.places = run.places.node(node.id)
        self.api: LLMApi = _WatchedApi(run.services, lambda: self._post)
        self.events = NodeEvents(run.store, node.branch, run.journal.objective)
        self.output = _Pieces(self._print)
        self.bench = PhaseBench(run, node, self._check_time, self.tell, self.output.add)
        self._post: PostEventProxy | None = None

    @property
    def branch(self) -> BranchHandle | None:
        """Branch of the memory, if the node has one."""
        store, branch = self.run.store, self.node.branch
        return store[branch] if store and branch else None

    @cached_property
    def agent(self) -> SearchAgent:
        """Asks the model about the node."""
        run, folder, branch = self.run, self.places.prompt_logs, self.branch
        memory = None
        if self.state is not None and branch is not None:
            lessons = shown_ids(board(run.journal, self.node))
            memory = NodeMemory(
                branch,
                self.node.id,
                MemoryPromptLog(folder, stage=self.state.label),
                shown_elsewhere(self.node, run.journal.refuted.keys() | lessons),
                is_required=not run.config.has_two_calls,
            )
        return SearchAgent(self.api, run.prompts, folder, run.config.asking, memory)

    @contextmanager
    def post(self, alias: str) -> Iterator[PostEventProxy]:
        """Write a post of a role inside the block; phases that begin meanwhile are its status."""
        with self.run.emitter.post(alias) as self._post:
            yield self._post

    def tell(self, phase: str) -> None:
        """Tell that a phase begins."""
        if self._post is not None:
            self._post.update_status(phase)

    def _print(self, text: str) -> None:
        if self._post is not None:
            self._post.emit_execution_output("stdout", text[-_PIECE_CHARS:])

    def cancel(self) -> None:
        """Cancel the work, from any thread."""
        self.api.close()
        self.bench.cut_off()

    def check(self) -> None:
        """Check, between the steps of the round, whether the work goes on.

        Raises:
            WorkCancelled: If the work was cancelled.
        """
        if self.api.is_interrupted:
            raise WorkCancelled("It was stopped.")

    def _check_time(self) -> None:
        """Check, after a cut-off, whether there is time again."""
        self.check()
        self.run.budget.check()

    def fail(self, kind: str, error: Exception) -> None:
        """Have the node fail for an error."""
        self.node = self.node.failed(NodeError(kind, str(error)))

    @property
    def cost(self) -> Cost:
        """Consumption of the questions so far."""
        return cost_of(self.api.usage, is_free=self.run.is_embedded)
