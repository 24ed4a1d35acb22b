"""Selection of the plugins that the code model is shown, where there are many."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taskweaver.llm.api import LLMApi
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.cells import successful_cells
from taskweaver.memory.round import Round
from taskweaver.memory.vectors.embedders import embedder
from taskweaver.plugin.spec import PluginEntry
from taskweaver.utils.retrieval import TextIndex

_WORD = re.compile(r"\w+")


class PluginSelection:
    """Chooses plugins by name and description for a request. Needs `close`."""

    def __init__(
        self,
        most: int | None,
        llm_api: LLMApi,
        embedding_model: str,
        logger: TelemetryLogger,
    ) -> None:
        """Choose at most so many.

        Without `most` all are shown. Without an embedding model the table of the package compares
        meanings.
        """
        self._most = most
        self._embedder = embedder(embedding_model, llm_api.get_embedding_list, logger.warning)
        self._texts: list[str] = []
        self._index: TextIndex | None = None

    def pool(
        self, plugins: Sequence[PluginEntry], rounds: Sequence[Round], task: str
    ) -> list[PluginEntry]:
        """Return the plugins to show, in order: fitting plugins, and plugins used before.

        The last of the rounds has the request.
        """
        if self._most is None or self._most >= len(plugins):
            return list(plugins)
        request = "\n".join(dict.fromkeys([rounds[-1].user_query if rounds else "", task]))
        names = {entry.name for entry in self.select(plugins, request)}
        names.update(*(_WORD.findall(cell.code) for cell in successful_cells(rounds)))
        return [entry for entry in plugins if entry.name in names]

    def select(self, plugins: Sequence[PluginEntry], request: str) -> list[PluginEntry]:
        """Return the plugins that suit a request best, the best first."""
        texts = [f"{entry.name} {entry.spec.description}" for entry in plugins]
        if self._index is None or texts != self._texts:
            self.close()
            self._texts, self._index = texts, TextIndex(texts, self._embedder)
        best = [*self._index.find(request, len(texts)), *range(len(texts))]
        return [plugins[number] for number in list(dict.fromkeys(best))[: self._most]]

    def close(self) -> None:
        """Discard the index."""
        index, self._index = self._index, None
        if index is not None:
            index.close()
