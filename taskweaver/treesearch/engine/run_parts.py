"""Parts of a run that its attempts share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taskweaver.llm.services import ModelServices
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.treesearch.agent.describe import metric_text
from taskweaver.treesearch.agent.prompt_files import PromptFiles
from taskweaver.treesearch.engine.change_claims import ChangeClaims
from taskweaver.treesearch.execution.executors.protocol import JobExecutor
from taskweaver.treesearch.execution.machine import WorkerFacts
from taskweaver.treesearch.execution.resources import Materials
from taskweaver.treesearch.execution.results import Evaluator
from taskweaver.treesearch.execution.scripts import ScriptRunner
from taskweaver.treesearch.execution.timing import MeasuringSlots
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.idea import Idea
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import Budget
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.utils.text import fenced


@dataclass(frozen=True, slots=True)
class RunParts:
    """Parts of a run that its attempts share.

    Attributes:
        config: Configuration.
        places: Files of the run.
        journal: Nodes of the run.
        idea: The idea.
        environment: Facts about the machine and its network, as prompts show them.
        earlier: Findings of earlier runs of the idea, as data.
        history: The same in words; empty for none.
        evaluator: Program that measures attempts; None where they measure themselves.
        budget: Budget of the run.
        store: Memory; None for a run without memory.
        prompts: Texts of the prompts.
        services: Models.
        is_embedded: Whether the model is built in, which proposes and does nothing else.
        claims: Programs that attempts have claimed.
        executor: Runs jobs.
        worker: Facts about the machines that run jobs.
        scripts: Runs the scripts of attempts; None where attempts have phases.
        materials: Resources.
        slots: Turns of timed runs.
        emitter: Receives the events of the rounds.
        spans: Contexts of the spans of nodes, by the ids of the nodes.
    """

    config: SearchConfig
    places: RunPlaces
    journal: Journal
    idea: Idea
    environment: Mapping[str, Any]
    earlier: Mapping[str, Any]
    history: str
    evaluator: Evaluator | None
    budget: Budget
    store: BranchedMemory | None
    prompts: PromptFiles
    services: ModelServices
    is_embedded: bool
    claims: ChangeClaims
    executor: JobExecutor
    worker: WorkerFacts
    scripts: ScriptRunner | None
    materials: Materials
    slots: MeasuringSlots
    emitter: SessionEventEmitter
    spans: dict[str, Any] = field(default_factory=dict)

    @property
    def aim(self) -> dict[str, str]:
        """The idea, and its metric with the data sets and the noise so far, as sections."""
        return {
            "Research idea": fenced(self.idea.text, "markdown"),
            "Evaluation metric": metric_text(self.journal),
        }
