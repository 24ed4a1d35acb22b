"""The play of a case: place, application, conversation, time limit and row of results."""

from __future__ import annotations

import json
import subprocess
import textwrap
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from taskweaver import __version__
from taskweaver.app.app import TaskWeaverApp
from taskweaver.errors import TaskWeaverError
from taskweaver.evaluation.case import EvalCase, ScoringPoint
from taskweaver.evaluation.checks import not_met
from taskweaver.evaluation.conversation import CaseConversation, Recording
from taskweaver.evaluation.forms import CaseFailed
from taskweaver.evaluation.judge import StatementJudge
from taskweaver.evaluation.results import AnsweredBy, Outcome, ResultRow
from taskweaver.llm.services import ModelServices
from taskweaver.trust.opening import Trust
from taskweaver.utils.text import fill

_GRACE_S = 20.0
"""Time in which a case that was interrupted, then stopped, has to end."""

_SHOWN_CHARS = 300
_OWN_FOLDERS = {
    "workspace.workspace_path": "workspace",
    "execution_service.env_dir": "workspace/env",
    "logging.log_folder": "logs",
    "session.data_dir": "data",
    "session.experience_dir": "experience",
}
_DECIDING_CELL = """\
import json, sys, types
sys.path.insert(0, ".")
class HumanMessage(types.SimpleNamespace): type = "human"
class AIMessage(types.SimpleNamespace): type = "ai"
history = [kind(content=text) for pair in json.loads({TURNS})
    for kind, text in zip((AIMessage, HumanMessage), pair)]
def check_agent_response(chat_history, agent_response):
{BODY}
    return None
assert check_agent_response(history, history[-1].content if history else "") is not False
"""
"""The code of a scoring point as a function: the model that plays the user is the AI there."""


@dataclass(frozen=True, slots=True)
class PlaySetup:
    """Settings that all cases of an evaluation share.

    Attributes:
        project: The project folder.
        has_project: Whether the user has one; a case may name its own in its place.
        config: Configuration keys, before those of a case.
        trust: Consent to the effects of opening the project.
        is_trusted: Whether cases may run programs and set keys that need consent.
        by: Who answers.
        model: Name of the model.
    """

    project: Path
    has_project: bool
    config: dict[str, Any]
    trust: Trust
    is_trusted: bool
    by: AnsweredBy
    model: str

    def refusal(self, case: EvalCase) -> str:
        """Return the reason why a case is not played, or an empty text."""
        if self.by == "recording" and not case.is_recorded:
            return "it has no recorded replies"
        if self.by == "offline" and not case.offline:
            return "it is not for the offline analyst"
        if case.effects and not self.is_trusted:
            return f"it needs your consent (--trust) for {', '.join(case.effects)}"
        return ""


@dataclass
class CasePlay:
    """One case being played: `run_within_limit` once, `interrupt` from any thread."""

    case: EvalCase
    setup: PlaySetup
    _began: float = field(default_factory=time.perf_counter)
    _time_s: float = 0.0

    def __post_init__(self) -> None:
        """Prepare the conversation. Nothing is asked yet."""
        self._talk = CaseConversation(self.case)

    def run_within_limit(self) -> ResultRow:
        """Play the case. At the limit interrupt the case, then stop the application, then go on."""
        refusal = self.setup.refusal(self.case)
        if refusal:
            return self._row("skipped", problems=(refusal,))
        self._began = time.perf_counter()
        ended: list[ResultRow] = []
        thread = threading.Thread(
            target=lambda: ended.append(self._run()), name=f"eval-{self.case.name}", daemon=True
        )
        thread.start()
        thread.join(self.case.limit_s)
        is_late = thread.is_alive()
        for end in (self.interrupt, self._stop):
            if thread.is_alive():
                end()
                thread.join(_GRACE_S)
        limit = f"it took longer than {self.case.limit_s:g} s"
        if not ended:
            return self._row("timeout", problems=(f"{limit}, and does not end",))
        # One that is interrupted while its application opens fails there.
        if ended[0].outcome == "timeout" or (is_late and ended[0].outcome == "error"):
            return self._row("timeout", problems=(limit, *ended[0].problems))
        return ended[0]

    def interrupt(self) -> None:
        """End the question and the judging under way, and begin no further step."""
        self._talk.interrupt()

    def _stop(self) -> None:
        """End the application of the case with all kernels."""
        if self._talk.app is not None:
            self._talk.app.stop()

    def _run(self) -> ResultRow:
        try:
            with TemporaryDirectory(prefix="taskweaver-eval-", ignore_cleanup_errors=True) as name:
                return self._play(Path(name).resolve())
        except TaskWeaverError as error:
            return self._row("error", problems=(str(error),))
        except Exception as error:  # noqa: BLE001 - of any kind: the other cases go on
            return self._row("error", problems=(f"{type(error).__name__}: {error}",))

    def _row(
        self, outcome: Outcome, *, problems: tuple[str, ...] = (), score: float = 0.0
    ) -> ResultRow:
        """Return the row of the case at this moment."""
        case, talk, used = self.case, self._talk, self._talk.usage
        return ResultRow(
            case=case.name,
            kind=case.kind,
            by=self.setup.by,
            model=self.setup.model,
            digest=case.digest,
            outcome=outcome,
            score=round(score, 4),
            questions=len(talk.turns),
            calls=used.calls,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            cached_tokens=used.cached_tokens,
            is_estimated=used.is_estimated,
            judge_calls=talk.judge_calls,
            time_s=round(self._time_s or time.perf_counter() - self._began, 3),
            is_held_out=case.held_out,
            problems=problems,
            notes=tuple(talk.notes),
            answers=tuple(answer for _, answer in talk.turns),
            version=__version__,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _play(self, folder: Path) -> ResultRow:
        case, setup = self.case, self.setup
        config = {**setup.config, **_prepared(case, folder), **case.config}
        for command in case.pre_command:
            _run_command(case, command, case.command_folder or folder)
        own = None if setup.has_project else case.app_dir
        if own is not None and not setup.is_trusted:
            raise CaseFailed(case.name, f"it opens the project {own}: allow it with --trust.")
        talk = self._talk
        recording: Any = None
        if setup.by == "recording":
            recording = talk.recording = Recording(case.name)
            config |= {"llm.api_type": "function", "llm.form": "tools", "ext_llms.llm_configs": {}}
        trust = setup.trust if own is None else True
        with TaskWeaverApp(own or setup.project, config, model=recording, trust=trust) as app:
            talk.app = app
            if setup.by == "live":
                talk.judge = StatementJudge(app.app_injector.get(ModelServices))
            self._began = time.perf_counter()
            return self._converse(talk)

    def _converse(self, talk: CaseConversation) -> ResultRow:
        """Play and score the conversation. The row has the time without the scoring."""
        talk.play()
        self._time_s = time.perf_counter() - self._began
        weighed: list[tuple[float, str]] = []
        if not talk.is_over:
            talk.check_all()
            weighed = [(point.weight, _decide(talk, point)) for point in self.case.points]
        weighed += [(1.0, problem) for problem in talk.problems]
        problems = tuple(problem for _, problem in weighed if problem)
        if talk.is_over:
            return self._row("timeout", problems=problems)
        met = sum(weight for weight, problem in weighed if not problem)
        score = met / sum(weight for weight, _ in weighed) if weighed else 1.0
        return self._row("failed" if problems else "passed", problems=problems, score=score)


def _decide(talk: CaseConversation, point: ScoringPoint) -> str:
    """Return the problem of a scoring point, or an empty text."""
    if point.eval_code:
        body = textwrap.indent(point.eval_code, "    ")
        cell = fill(_DECIDING_CELL, TURNS=repr(json.dumps(talk.turns)), BODY=body)
        reason = talk.run_check(cell)
    else:
        reason = talk.ask_judge(point.score_point)
    return reason and not_met(point.score_point, reason)


def _prepared(case: EvalCase, folder: Path) -> dict[str, Any]:
    """Write the files of a case, and return the configuration that leads to the files.

    Nothing of a case is written into the project's own folder.
    """
    for requirement in case.dependencies:
        _require_package(case.name, requirement)
    config = {key: str(folder / name) for key, name in _OWN_FOLDERS.items()}
    parts: dict[str, Mapping[str, bytes] | None] = {
        "session.data_dir": case.data,
        "plugin.base_path": case.plugins,
        "document_retriever.index_folder": case.documents,
    }
    try:
        for key, files in parts.items():
            if files is None:
                continue
            config.setdefault(key, str(folder / key))
            for name, content in files.items():
                target = Path(config[key], name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
    except OSError as error:
        raise CaseFailed(case.name, f"its files cannot be written: {error}") from error
    return config


def _require_package(case: str, text: str) -> None:
    try:
        requirement = Requirement(text)
        installed = version(requirement.name)
    except (InvalidRequirement, PackageNotFoundError) as error:
        raise CaseFailed(case, f"{text!r} is no package that is installed: {error}") from error
    if not requirement.specifier.contains(installed, prereleases=True):
        raise CaseFailed(case, f"{text} is needed, and {installed} is installed.")


def _run_command(case: EvalCase, command: str, folder: Path) -> None:
    """Run a command in a shell, with the user's rights.

    Raises:
        CaseFailed: If it fails, or takes longer than the case may.
    """
    try:
        subprocess.check_output(
            ["/bin/sh", "-c", command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            timeout=case.limit_s,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (error.output or b"").decode("utf-8", "replace").strip()[-_SHOWN_CHARS:]
        raise CaseFailed(case.name, f"{error} {said}") from error
