"""Questions to a model on behalf of the run: about stages, not about one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.llm.api import LLMApi
from taskweaver.memory.branched.protocol.audit import MemoryPromptLog
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.agent.describe import metric_text
from taskweaver.treesearch.agent.events import shown_elsewhere
from taskweaver.treesearch.agent.node_agent import AnswerForm, NodeAgent, NodeMemory, as_unusable
from taskweaver.treesearch.agent.prompt_files import KEEPING, PromptFiles
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import AskLimits
from taskweaver.treesearch.model.stages import StageState
from taskweaver.utils.text import fenced


@dataclass(frozen=True, slots=True)
class RunAgent:
    """Asks a model about the stages of a run, with the memory of the root, if the run has one.

    Prompts and replies are written to a folder. `alias` is the model, empty for the main one.
    """

    api: LLMApi
    prompts: PromptFiles
    store: BranchedMemory | None
    limits: AskLimits
    folder: Path
    journal: Journal
    idea: str
    alias: str
    is_memory_required: bool

    def ask(
        self, name: str, stage: StageState, sections: Mapping[str, Any], schema: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Ask for an object of a schema; of a task with a memory, with a memory block.

        `name` is that of the prompt's file, below ``prompts/``. The sections come after the idea,
        the metric and the goals.

        Raises:
            ReplyUnusable: If no reply could be used.
            BudgetSpent: If no more may be spent.
            ModelError: If no other question could be answered either.
        """
        store = self.store if name in KEEPING else None
        root = store.root if store else None
        memory = None
        if root is not None:
            log = MemoryPromptLog(self.folder)
            is_required = self.is_memory_required
            memory = NodeMemory(root, log, shown_elsewhere(), is_required=is_required)
        system = self.prompts.text("core/system")
        agent = NodeAgent(self.api, "root", self.folder, system, memory, self.limits)
        prompt = {
            "Introduction": self.prompts.text(name),
            "Research idea": fenced(self.idea, "markdown"),
            "Evaluation metric": metric_text(self.journal),
            "Goals": stage.goals,
            **sections,
        }
        first = self.prompts.text(name, with_memory=True)
        hint = name.removesuffix("/introduction").rpartition("/")[2]
        label = f"{stage.label}_{hint}"
        with as_unusable():
            form = AnswerForm(schema, self.alias)
            return agent.ask_structured(label, prompt, form, first, hint=hint)
