"""Questions to a model on behalf of the run: about stages, not about one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.agent.events import shown_elsewhere
from taskweaver.treesearch.agent.node_agent import AnswerForm, NodeAgent, NodeMemory, as_unusable
from taskweaver.treesearch.agent.prompt_files import KEEPING, PromptFiles
from taskweaver.treesearch.model.limits import AskLimits


class RunAgent:
    """Asks a model about the run as a whole, with the memory of the root."""

    def __init__(
        self,
        services: ModelServices,
        prompts: PromptFiles,
        store: BranchedMemory | None,
        limits: AskLimits,
        folder: Path,
    ) -> None:
        """Open the run's access to the models.

        Args:
            services: The models.
            prompts: Texts of the prompts.
            store: The memory; None without.
            limits: How often the model is asked.
            folder: Folder of the prompts and replies.
        """
        self._api = LLMApi(services)
        self._prompts = prompts
        self._store = store
        self._limits = limits
        self._folder = folder

    def give_up(self) -> None:
        """Cancel running and later calls, from any thread."""
        self._api.close()

    def ask(
        self,
        name: str,
        label: str,
        sections: Mapping[str, Any],
        schema: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Ask for an object of a schema; of a task with a memory, for the memory block first.

        Args:
            name: Name of the prompt's file, below ``prompts/``.
            label: Name of the prompt's files.
            sections: Further sections of the prompt.
            schema: Form of the answer.

        Raises:
            ReplyUnusable: If no reply could be used.
            BudgetSpent: If no more may be spent.
            ModelError: If no other question could be answered either.
        """
        store = self._store if name in KEEPING else None
        root = store.root if store else None
        memory = None
        if root is not None:
            memory = NodeMemory(root, MemoryPromptLog(self._folder), shown_elsewhere())
        system = self._prompts.text("core/system")
        agent = NodeAgent(self._api, "root", self._folder, system, memory, self._limits)
        prompt = {"Introduction": self._prompts.text(name), **sections}
        first = self._prompts.text(name, with_memory=True)
        hint = name.removesuffix("/introduction").rpartition("/")[2]
        with as_unusable():
            return agent.ask_structured(label, prompt, AnswerForm(schema), first, hint=hint)
