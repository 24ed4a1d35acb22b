"""First impressions of data files: rows, columns, first rows, and questions that fit them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pydantic import BaseModel

from taskweaver.app.first_questions import FileOutline, first_questions
from taskweaver.doors.agent_api.routes import OF_BRANCH, ONE, PREFIX, AgentOperations
from taskweaver.server.accounts import LOCAL_USER
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Call, operation, view
from taskweaver.session.config import AppSessionConfig
from taskweaver.tables.files.profile import ColumnProfile
from taskweaver.utils.data_files import is_data_file
from taskweaver.utils.file_system.safe_fs import Folder, copy_content

_MOST_FILES, _MOST_QUESTIONS, _SAMPLE_ROWS = 200, 3, 3
_MOST_COPIED_BYTES = 2 << 20
_PLAIN_TEXTS = {".csv", ".tsv"}
_MOST_KNOWN = 2_000
_AT_ONCE = 5
_WAIT_S = 0.3
"""Time for files to be read before the answer comes without them."""
_Stamp = tuple[str, str, int, int]


class FileColumn(BaseModel):
    """A column of a file: its name, the kind of its values in a word or two, its histogram."""

    name: str
    kind: str
    low: str
    high: str
    bars: list[int]


class FileQuestion(BaseModel):
    """A question that is answered without a model; `result` says what the answer shows."""

    text: str
    result: str
    file: str


class FileOverview(BaseModel):
    """A data file, without rows and columns while it `is_being_read`, and if it is too large.

    `problem` says why it cannot be read. `sample` has the first rows as they are written.
    """

    name: str
    size: int
    changed_at: float
    is_being_read: bool = False
    rows: int | None = None
    is_estimate: bool = False
    columns: list[FileColumn] = []
    sample: list[list[str]] = []
    questions: list[FileQuestion] = []
    problem: str = ""


class FileOverviews(BaseModel):
    """Data files of a folder, the newest first, and questions that fit them."""

    folder: str
    files: list[FileOverview]
    questions: list[FileQuestion]


class _DataFile(NamedTuple):
    name: str
    stat: os.stat_result
    # Opened in a folder that code can write: links there may lead anywhere.
    place: Path | Callable[[], BinaryIO]


class FileOverviewOperations(AgentOperations):
    """Overviews of the project's files, and of those of a branch."""

    def __init__(self, sessions: AgentSessions) -> None:
        super().__init__(sessions)
        self._config = sessions.app.app_injector.get(AppSessionConfig)
        self._known: dict[_Stamp, FileOverview] = {}
        self._reading: set[_Stamp] = set()

    @operation("GET", f"{PREFIX}/files", "Data files of the project, with questions that fit them")
    async def _of_project(self, _call: Call) -> FileOverviews:
        paths = await asyncio.to_thread(self._project_files)
        files = [_DataFile(one.name, one.stat(), one) for one in paths]
        folder = self._sessions.app.app_dir.name
        return await self._shown(folder, str(self._config.data_dir), files, paths)

    def _project_files(self) -> list[Path]:
        return [path for path in self._config.data_files() if is_data_file(path.name)]

    @operation(
        "GET", f"{ONE}/overview", "Data files of a branch, with questions that fit", query=OF_BRANCH
    )
    async def _of_branch(self, call: Call) -> FileOverviews:
        place = (await self._branch(call)).execution_cwd

        def opened(name: str) -> BinaryIO:
            with Folder.at(place) as folder:
                return folder.open_file(name)

        def found() -> list[_DataFile]:
            with Folder.at(place) as folder:
                files = list(folder.files())
            return [_DataFile(n, s, partial(opened, n)) for n, s in files if is_data_file(n)]

        files, others = await asyncio.to_thread(lambda: (found(), self._project_files()))
        if call.user.name != LOCAL_USER:  # no process of the server reads what others bring
            return FileOverviews(folder="", files=[_plain(file) for file in files], questions=[])
        return await self._shown("", str(place), files, others)

    async def _shown(
        self, folder: str, place: str, files: list[_DataFile], others: list[Path]
    ) -> FileOverviews:
        """Return what is known of files after a moment; the reading of the rest goes on."""
        files = sorted(files, key=lambda file: file.stat.st_mtime_ns, reverse=True)[:_MOST_FILES]
        stamps = {(place, one.name, one.stat.st_mtime_ns, one.stat.st_size): one for one in files}
        new = [one for one in stamps if one not in self._known and one not in self._reading]
        if new:
            self._reading.update(new)
            work = partial(self._read, {stamp: stamps[stamp] for stamp in new}, others)
            await asyncio.wait([asyncio.create_task(asyncio.to_thread(work))], timeout=_WAIT_S)
        shown = [
            self._known.get(stamp) or _plain(file, is_being_read=True)
            for stamp, file in stamps.items()
        ]
        first = zip_longest(*(one.questions for one in shown))
        questions = islice((one for one in chain(*first) if one), _MOST_QUESTIONS)
        return FileOverviews(folder=folder, files=shown, questions=list(questions))

    def _read(self, files: dict[_Stamp, _DataFile], others: list[Path]) -> None:
        items = list(files.items())
        for at in range(0, len(items), _AT_ONCE):
            some = dict(items[at : at + _AT_ONCE])
            try:
                self._known.update(_overviews(some, others))
                for old in list(self._known)[:-_MOST_KNOWN]:
                    del self._known[old]
            finally:
                self._reading.difference_update(some)


def _overviews(files: dict[_Stamp, _DataFile], others: list[Path]) -> dict[_Stamp, FileOverview]:
    """Return what is found in files; their questions name them where there are `others`."""
    found = {stamp: _plain(file) for stamp, file in files.items()}
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for stamp, file in files.items():
            try:
                place = file.place
                path = place if isinstance(place, Path) else _copied(file, place, Path(folder))
                if path:
                    paths[stamp] = path
            except OSError as error:
                found[stamp].problem = error.strerror or str(error)
        second = [path for path in others if path not in paths.values()][:1]
        outlines = first_questions([*paths.values(), *second])
        for (stamp, _), outline in zip(paths.items(), outlines, strict=False):
            _take(found[stamp], files[stamp], outline)
    return found


def _copied(file: _DataFile, opened: Callable[[], BinaryIO], folder: Path) -> Path | None:
    """Return a copy that code cannot swap meanwhile; None of a file that is not read here.

    Code may have written the file: a small one of another format can fill the memory.
    """
    is_read = Path(file.name).suffix.lower() in _PLAIN_TEXTS
    if not is_read or file.stat.st_size > _MOST_COPIED_BYTES:
        return None
    copy = folder / file.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    with opened() as source, copy.open("xb") as target:
        copy_content(source, target)
    return copy


def _plain(file: _DataFile, *, is_being_read: bool = False) -> FileOverview:
    return FileOverview(
        name=file.name,
        size=file.stat.st_size,
        changed_at=file.stat.st_mtime,
        is_being_read=is_being_read,
    )


def _take(shown: FileOverview, file: _DataFile, outline: FileOutline) -> None:
    """Take over what an outline says of a file."""
    shown.problem = outline.problem
    shown.questions = [
        FileQuestion(text=one.text, result=one.shows, file=file.name) for one in outline.questions
    ]
    if len(outline.tables) == 1:
        (table,) = outline.tables
        shown.rows, shown.is_estimate = table.rows, outline.is_estimate
        shown.columns = [view(FileColumn, one, kind=_kind(one)) for one in table.columns]
        shown.sample = [list(row) for row in outline.first[:_SAMPLE_ROWS]]


def _kind(column: ColumnProfile) -> str:
    """Return the kind of a column's values in a word or two."""
    if column.kind == "time":
        return "time" if "T" in column.low else "day"
    if column.kind == "text":
        return f"{column.distinct} words" if column.values and column.distinct > 1 else "text"
    return {"flag": "yes or no"}.get(column.kind, "number")
