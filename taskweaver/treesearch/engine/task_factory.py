"""The wiring of a node's task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.agent.board import board, shown_ids
from taskweaver.treesearch.agent.events import NodeEvents, shown_elsewhere
from taskweaver.treesearch.agent.node_agent import NodeAgent, NodeMemory
from taskweaver.treesearch.agent.prompt_files import PromptFiles
from taskweaver.treesearch.agent.proposer import Proposer, Question, RunBackground
from taskweaver.treesearch.agent.reviewer import Reviewer
from taskweaver.treesearch.agent.transcript import NodeTranscript
from taskweaver.treesearch.engine.assessment import NodeAssessor
from taskweaver.treesearch.engine.attempt_writer import AttemptWriter
from taskweaver.treesearch.engine.change_claims import ChangeClaims
from taskweaver.treesearch.engine.later_plots import PlotTask
from taskweaver.treesearch.engine.node_executor import ExecutionSetup, NodeExecutor, WorkCancelled
from taskweaver.treesearch.engine.node_task import NodeTask, Steps
from taskweaver.treesearch.engine.plotting import Plotter
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import Budget
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.model.stages import StageState

_SYSTEM = "core/system"


@dataclass(frozen=True, slots=True)
class NodeTaskFactory:
    """Makes the tasks of a run's nodes.

    `is_embedded` is a built-in model, which proposes and does nothing else.
    """

    config: SearchConfig
    journal: Journal
    background: RunBackground
    setup: ExecutionSetup
    services: ModelServices
    is_embedded: bool
    prompts: PromptFiles
    store: BranchedMemory | None
    claims: ChangeClaims
    budget: Budget

    def make(self, stage: StageState, node: Node) -> NodeTask:
        """Return the task of a node that begins, in its stage."""
        parent = self.journal[node.parent] if node.parent else None
        scripts = self.setup.scripts
        if parent is not None and scripts is not None:
            node = replace(node, line=scripts.line(node, parent))
        api = LLMApi(self.services)
        events = NodeEvents(self.store, self.journal.objective)
        executor = NodeExecutor(self.setup, self.journal, node, self._check(api))
        question = Question(
            node=node,
            parent=parent,
            background=self.background,
            state=stage,
            journal=self.journal,
            run_seconds=self.config.limits.run_s,
            has_memory=self.store is not None,
            is_script=scripts is not None,
            is_forked=bool(node.line),
            loss=executor.loss,
        )
        steps = partial(self._steps, question, api, events, executor)
        return NodeTask(question, api, self.is_embedded, events, executor, steps)

    def make_plots(self, node: Node) -> PlotTask:
        """Return the task that draws the plots of a node that has ended.

        Its questions have no memory: what they would write came too late for children that began.
        """
        api = LLMApi(self.services)
        events = NodeEvents(self.store, self.journal.objective)
        executor = NodeExecutor(self.setup, self.journal, node, self._check(api))
        agent = self._agent(api, node.id, None)
        plotter = self._plotter(node.id, events, self._reviewer(agent), executor)
        return PlotTask(node, self.journal, api, executor, plotter)

    def _check(self, api: LLMApi) -> Callable[[], None]:
        """Return the check after a cut-off: it raises unless there is time again."""

        def check() -> None:
            if api.is_interrupted:
                raise WorkCancelled("It was stopped.")
            self.budget.check()

        return check

    def _agent(self, api: LLMApi, node_id: str, memory: NodeMemory | None) -> NodeAgent:
        folder, system = self.setup.places.node(node_id).prompt_logs, self.prompts.text(_SYSTEM)
        return NodeAgent(api, node_id, folder, system, memory, self.config.asking)

    def _reviewer(self, agent: NodeAgent) -> Reviewer:
        return Reviewer(self.prompts, agent, self.background.idea.text, self.config.models)

    def _plotter(
        self, node_id: str, events: NodeEvents, reviewer: Reviewer, executor: NodeExecutor
    ) -> Plotter:
        places, is_seen = self.setup.places.node(node_id), bool(self.config.models.vlm)
        return Plotter(places, events, reviewer, executor.run_plotting, is_seen)

    def _steps(
        self, question: Question, api: LLMApi, events: NodeEvents, executor: NodeExecutor
    ) -> Steps:
        """Begin the transcript of a node; return it with the steps that ask the model."""
        node = question.node
        places = self.setup.places.node(node.id)
        branch = self.store[node.branch] if self.store is not None else None
        transcript = NodeTranscript(self.store, node, self.background.idea.title)
        memory = None
        if branch is not None:
            log = MemoryPromptLog(places.prompt_logs, stage=question.state.label)
            lessons = shown_ids(board(self.journal, node))
            memory = NodeMemory(
                branch,
                log,
                shown_elsewhere(node, self.journal.refuted.keys() | lessons),
                is_required=not self.config.has_two_calls,
            )
        agent = self._agent(api, node.id, memory)
        reviewer = self._reviewer(agent)
        writer = AttemptWriter(
            question=question,
            proposer=Proposer(
                self.prompts, agent, self.config.models.code, in_fences=self.config.has_two_calls
            ),
            places=places,
            memory=branch,
            claims=self.claims,
            on_phase=self.setup.on_phase,
            phase0=self.config.phase0,
        )
        assessor = NodeAssessor(
            config=self.config,
            journal=self.journal,
            reviewer=reviewer,
            events=events,
            plotter=self._plotter(node.id, events, reviewer, executor),
            asks=not self.is_embedded and node.kind is not NodeKind.SEED,
            draws_later=self.config.draws_later,
            on_phase=self.setup.on_phase,
        )
        return transcript, writer, assessor
