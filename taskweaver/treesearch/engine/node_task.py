"""The task of one node: proposal, execution and assessment.

It runs in a thread of the coordinator, which asks the model and owns the memory; commands run in a
worker process, or in a kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.treesearch.agent.events import NodeEvents
from taskweaver.treesearch.agent.node_agent import FATAL
from taskweaver.treesearch.agent.proposer import Question
from taskweaver.treesearch.agent.transcript import NodeTranscript
from taskweaver.treesearch.engine.assessment import NodeAssessor
from taskweaver.treesearch.engine.attempt_writer import AttemptWriter
from taskweaver.treesearch.engine.node_executor import NodeExecutor, WorkCancelled
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.execution.scripts import REPLAY_ERROR
from taskweaver.treesearch.model.node import Cost, Node, NodeError, NodeStatus

_OUTPUT_CHARS = 20_000


Steps = tuple[NodeTranscript, AttemptWriter, NodeAssessor]


@dataclass(frozen=True, slots=True)
class NodeTask:
    """The task of one node, whose calls of the model cost nothing if `is_free`.

    `open_steps` begins its transcript, and returns it with the steps that ask a model.
    """

    question: Question
    api: LLMApi
    is_free: bool
    events: NodeEvents
    executor: NodeExecutor
    open_steps: Callable[[], Steps]

    def cancel(self) -> None:
        """Cancel the task, from any thread."""
        self.api.close()
        self.cut_off()

    def cut_off(self) -> None:
        """End the command it waits for, since the time of the run is over; from any thread."""
        self.executor.cut_off()

    def run(self) -> Node:
        """Run the task; return the node as it ended.

        Raises:
            WorkCancelled: If it was cancelled.
            BudgetSpent: If it cannot be finished within the budget of the run.
            WorkerLost: If its worker died; the node may be tried again.
            ModelError: If no call to the model can succeed, now or later.
            SearchError: If the run cannot go on.
        """
        node = self.question.node
        transcript, writer, assessor = self.events.together(self._begin)
        try:
            node = writer.write(node)
            transcript.proposed(node)
            if node.status is not NodeStatus.SKIPPED:
                node, result = self._execute(node, writer, transcript)
                node = assessor.assess(node, result)
        except ReplyUnusable as error:
            node = node.failed(NodeError("PhasePlanError", str(error)))
        except ModelError as error:
            if self.api.is_interrupted:
                raise WorkCancelled("It was stopped.") from error
            if error.kind in FATAL:
                raise
            node = node.failed(NodeError("ModelError", str(error)))
        node = replace(node, finished_at=time.time(), cost=self._cost())

        def end() -> None:
            self.events.result(node)
            transcript.ended(node, self.question.journal.objective)

        self.events.together(end)
        return node

    def _begin(self) -> Steps:
        self.events.created(self.question.node, self.question.state.label, self.question.loss)
        return self.open_steps()

    def _execute(
        self, node: Node, writer: AttemptWriter, transcript: NodeTranscript
    ) -> tuple[Node, JobResult]:
        ask = partial(writer.install_step, node)
        result = self.executor.execute(node, ask, writer.dependencies)
        if result.error is not None and result.error.kind == REPLAY_ERROR:
            node = replace(node, line=())  # so that repairing it begins with nothing
        node = replace(
            node,
            phases=result.phases,
            error=result.error,
            output=result.output[-_OUTPUT_CHARS:],
            exec_seconds=result.exec_seconds,
        )

        def note() -> None:
            for outcome in result.phases:
                self.events.phase(node, outcome)
            transcript.ran(node, result.variables)

        self.events.together(note)
        return node, result

    def _cost(self) -> Cost:
        used = self.api.usage
        if self.is_free:
            return Cost(used.calls)
        return Cost(used.calls, used.prompt_tokens, used.completion_tokens, used.cost)
