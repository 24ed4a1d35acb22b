"""Evaluations: cases played side by side within time limits, with a row of results each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from taskweaver.app.app import TaskWeaverApp
from taskweaver.evaluation.case import EvalCase, read_cases
from taskweaver.evaluation.forms import EvaluationError
from taskweaver.evaluation.play import CasePlay, PlaySetup
from taskweaver.evaluation.results import AnsweredBy, ResultRow, append_row, begin_file
from taskweaver.llm.services import ModelServices
from taskweaver.trust.opening import Trust
from taskweaver.utils.text import did_you_mean

OnRow = Callable[[ResultRow], None]
_OFFLINE = "builtin/offline"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation that is over.

    Attributes:
        announcement: One line: which model answered, and why.
        rows: A row for each case, in the order of the cases.
        resumed: Names of the cases whose rows were in the file already.
        broken: Files of cases that cannot be read.
        left_out: Number of cases that are held out and were not asked for.
    """

    announcement: str
    rows: tuple[ResultRow, ...]
    resumed: frozenset[str] = frozenset()
    broken: tuple[EvaluationError, ...] = ()
    left_out: int = 0

    @property
    def is_passed(self) -> bool:
        """Whether every case passed that can be played with this model."""
        outcomes = {row.outcome for row in self.rows}
        return not self.broken and "passed" in outcomes and outcomes <= {"passed", "skipped"}


def evaluate(  # noqa: PLR0913 - each is a choice of its own
    cases: str | Path,
    project: Path | None = None,
    *,
    config: dict[str, Any] | None = None,
    trust: Trust = None,
    is_trusted: bool = False,
    jobs: int = 1,
    out: Path | None = None,
    only: Sequence[str] = (),
    is_held_out: bool = False,
    on_start: Callable[[str, int], None] = lambda _line, _count: None,
    on_row: OnRow = lambda _: None,
) -> Evaluation:
    """Play cases, and return a row for each.

    Args:
        cases: A file of cases, a folder of files, or ``shipped``.
        project: The project folder; None looks upwards from the current one, and takes an empty
            project if there is none.
        config: Configuration keys, before those of the project.
            With ``llm.api_type`` ``recorded`` the recorded replies of the cases answer.
        trust: Consent to the effects of opening the project; see `TaskWeaverApp`.
        is_trusted: Whether cases may run programs of their own, and set keys that need consent.
        jobs: Number of cases that are played at the same time.
        out: File of results; rows of the same cases and model that are in it are taken from it.
        only: Names of cases; empty for all. They are played also if they are held out.
        is_held_out: Whether cases that are held out are played, too.
        on_start: Called with the announcement of the model and the number of cases to play.
        on_row: Called with each row when its case is over.

    Raises:
        EvaluationError: If there are no such cases, or the file of results cannot be used.
        TaskWeaverError: If the project cannot be opened, or no model can be reached as configured.
    """
    found, broken = read_cases(cases)
    chosen = _chosen(found, only, is_held_out=is_held_out)
    left_out = 0 if only else len(found) - len(chosen)
    settings = dict(config or {})
    with _setup(project, settings, trust, is_trusted=is_trusted) as (setup, announcement):
        known = _known(begin_file(out) if out else (), chosen, setup)
        due = [case for case in chosen if case.name not in known]
        on_start(announcement, len(due))
        played: dict[str, ResultRow] = {}
        for row in _play_all(due, setup, jobs):
            played[row.case] = row
            if out:
                append_row(out, row)
            on_row(row)
    rows = tuple(known.get(case.name) or played[case.name] for case in chosen)
    return Evaluation(announcement, rows, frozenset(known), tuple(broken), left_out)


def _chosen(cases: list[EvalCase], only: Sequence[str], *, is_held_out: bool) -> list[EvalCase]:
    if not only:
        return [case for case in cases if is_held_out or not case.held_out]
    names = [case.name for case in cases]
    for name in only:
        if name not in names:
            hint = did_you_mean(name, names, f"there are {len(names)} others.")
            raise EvaluationError(name, f"there is no case of this name; {hint}")
    return [case for case in cases if case.name in only]


def _known(
    rows: Sequence[ResultRow], cases: Sequence[EvalCase], setup: PlaySetup
) -> dict[str, ResultRow]:
    """Return the rows of a file that are still right: of the same case, answered by the same."""
    digests = {case.name: case.digest for case in cases}
    return {
        row.case: row
        for row in rows
        if row.is_scored
        and (row.digest, row.by, row.model) == (digests.get(row.case), setup.by, setup.model)
    }


def _play_all(cases: Sequence[EvalCase], setup: PlaySetup, jobs: int) -> Iterator[ResultRow]:
    """Play cases side by side, and yield a row for each case that ends."""
    plays = [CasePlay(case, setup) for case in cases]
    pool = ThreadPoolExecutor(max(jobs, 1), thread_name_prefix="eval")
    try:
        for done in as_completed([pool.submit(play.run_within_limit) for play in plays]):
            yield done.result()
    except BaseException:
        for play in plays:
            play.interrupt()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _setup(
    project: Path | None,
    config: dict[str, Any],
    trust: Trust,
    *,
    is_trusted: bool,
) -> Iterator[tuple[PlaySetup, str]]:
    """Open the project, or an empty project without one, once to learn who answers."""
    with TemporaryDirectory(prefix="taskweaver-eval-", ignore_cleanup_errors=True) as scratch:
        folder, is_valid, _ = TaskWeaverApp.discover_app_dir(project)
        has_project = project is not None or is_valid
        if not has_project:
            folder, trust = Path(scratch).resolve(), True
            (folder / "taskweaver_config.json").write_text("{}")
        with TaskWeaverApp(folder, config, trust=trust) as app:
            by, model, line = _answerer(app)
        setup = PlaySetup(folder, has_project, config, trust, is_trusted, by, model)
        yield setup, line


def _answerer(app: TaskWeaverApp) -> tuple[AnsweredBy, str, str]:
    """Return who answers, the name of the model, and a line that says so."""
    if app.config.get_enum("llm.api_type") == "recorded":
        return "recording", "recording", "model: the recorded replies of the cases (as configured)"
    services = app.app_injector.get(ModelServices)
    model = services.get().model
    return "offline" if model == _OFFLINE else "live", model, services.announcement
