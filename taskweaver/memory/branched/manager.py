"""`MemoryManager`: the face of a branched memory; each method hands on to the part that owns it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.parts import Parts
from taskweaver.memory.branched.run_face import RunFace
from taskweaver.memory.branched.search import Reranker
from taskweaver.memory.branched.system_face import SystemFace
from taskweaver.memory.branched.types import TextModel


class MemoryManager(RunFace, SystemFace):
    """The memory in one file. Use it as a context manager, or call `close`.

    A branch is named by its id or its node uid; where none is given the root is meant. Every
    write is committed when the call returns. All methods may be called from any thread.

    Attributes:
        path: The file.
        config: Its limits and switches.
    """

    def __init__(
        self,
        db_path: str | Path,
        config: MemoryConfig | None = None,
        *,
        llm: TextModel | None = None,
        rerank: Reranker | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open a memory; the file is made when it is not there.

        Args:
            db_path: The file.
            config: Limits and switches; None takes the defaults.
            llm: A model that shortens, sums up and weighs; None does without.
            rerank: Scores search results, such as an embedding model.
            clock: Returns the time in seconds since 1970.

        Raises:
            StoreTooNew, StoreCorrupt, StoreUnwritable, StoreBusy: If the file cannot be opened.
        """
        self.path = Path(db_path)
        chosen = config or MemoryConfig()
        parts = Parts(self.path, chosen, llm=llm, rerank=rerank, clock=clock)
        super().__init__(parts, chosen)

    def __enter__(self) -> Self:
        """Return the memory itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Finish what is being written, and close the file; safe to call again."""
        try:
            self._log.close()
        finally:
            self._parts.database.close()
