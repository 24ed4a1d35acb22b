"""Questions to a model on behalf of the run: about stages, not about one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskweaver.llm.api import LLMApi
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog
from taskweaver.treesearch.agent.events import shown_elsewhere
from taskweaver.treesearch.agent.node_agent import Form, NodeAgent, NodeMemory, as_unusable
from taskweaver.treesearch.agent.prompt_files import KEEPING
from taskweaver.treesearch.agent.toolbox import Toolbox


class RunAgent:
    """Asks a model about the run as a whole, with the memory of the root."""

    def __init__(self, tools: Toolbox) -> None:
        self._tools = tools
        self._api = LLMApi(tools.services)

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
        tools = self._tools
        folder = tools.places.folder / "logs" / "0-run" / "prompt_logs" / "manager"
        store = tools.store if name in KEEPING else None
        root = store.root if store else None
        memory = None
        if root is not None:
            memory = NodeMemory(root, MemoryPromptLog(folder), shown_elsewhere())
        system, limits = tools.prompts.text("core/system"), tools.config.asking
        agent = NodeAgent(self._api, "root", folder, system, memory, limits)
        prompt = {"Introduction": tools.prompts.text(name), **sections}
        first = tools.prompts.text(name, with_memory=True)
        hint = name.removesuffix("/introduction").rpartition("/")[2]
        with as_unusable():
            return agent.ask_structured(label, prompt, Form(schema), first, hint=hint)
