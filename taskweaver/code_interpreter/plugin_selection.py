"""Selection of the plugins that the code model is shown, where there are many."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taskweaver.errors import TaskWeaverError
from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.cells import successful_cells
from taskweaver.memory.round import Round
from taskweaver.plugin.spec import PluginEntry
from taskweaver.utils.ranking import WordIndex, cosine, topic_words

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

        Without `most` all are shown. Without an embedding model, or once it fails, words are
        compared.
        """
        self._most = most
        self._llm_api = llm_api
        self._embedding_model = embedding_model
        self._logger = logger
        self._texts: list[str] = []
        self._index: WordIndex | None = None
        self._vectors: dict[str, list[float]] = {}

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
        scores = self._similarities(texts, request) if self._embedding_model else None
        scores = self._by_words(texts, request) if scores is None else scores
        best = sorted(range(len(plugins)), key=lambda number: -scores[number])
        return [plugins[number] for number in best[: self._most]]

    def _by_words(self, texts: list[str], request: str) -> list[float]:
        if self._index is None or texts != self._texts:
            self.close()
            self._texts, self._index = texts, WordIndex(texts, is_stemming=True)
        return self._index.ranks(topic_words(request))

    def _similarities(self, texts: list[str], request: str) -> list[float] | None:
        new = [text for text in dict.fromkeys([*texts, request]) if text not in self._vectors]
        try:
            vectors = self._llm_api.get_embedding_list(new) if new else []
        except TaskWeaverError as error:
            if isinstance(error, ModelError) and error.kind == "cancelled":
                raise
            self._logger.warning(f"plugins are chosen by their words from now on: {error}")
            self._embedding_model = ""  # asking in vain at each turn would hold up the answers
            return None
        found = self._vectors | dict(zip(new, vectors, strict=True))
        # Kept are the plugins' own, and the request's as long as it is worked on.
        self._vectors = {text: found[text] for text in (*texts, request)}
        return [cosine(found[request], found[text]) for text in texts]

    def close(self) -> None:
        """Discard the index."""
        index, self._index = self._index, None
        if index is not None:
            index.close()
