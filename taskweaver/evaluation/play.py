"""The play of a case: its place, its application, its conversation, its limit, its row."""

from __future__ import annotations

import ast
import json
import os
import signal
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
from taskweaver.evaluation.conversation import CaseConversation, Recording
from taskweaver.evaluation.forms import CaseFailed
from taskweaver.evaluation.judge import StatementJudge, Turns
from taskweaver.evaluation.results import AnsweredBy, Outcome, ResultRow
from taskweaver.llm.services import ModelFunction, ModelServices
from taskweaver.llm.types import Usage
from taskweaver.trust.opening import Trust
from taskweaver.utils.parsing import parse
from taskweaver.utils.text import fill

_GRACE_S = 20.0
"""Time in which a case that was interrupted, then stopped, has to end."""

_SHOWN_CHARS, _NOT_FOUND = 300, 127
_OWN_FOLDERS = {
    "workspace.workspace_path": "workspace",
    "execution_service.env_dir": "workspace/env",
    "logging.log_folder": "logs",
    "session.data_dir": "data",
    "session.experience_dir": "experience",
}
_HISTORY = """\
import json, sys, types
sys.path.insert(0, ".")
class HumanMessage(types.SimpleNamespace): type = "human"
class AIMessage(types.SimpleNamespace): type = "ai"
chat_history = [kind(content=text) for pair in json.loads({TURNS})
    for kind, text in zip((AIMessage, HumanMessage), pair)]
agent_response = chat_history[-1].content if chat_history else ""
"""
"""As the original has it: the model that plays the user is the AI, the agent the human."""


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
        function: Function that plays the model; None for the configured one.
    """

    project: Path
    has_project: bool
    config: dict[str, Any]
    trust: Trust
    is_trusted: bool
    by: AnsweredBy
    model: str
    function: ModelFunction | None = None

    def refusal(self, case: EvalCase) -> str:
        """Return the reason why a case is not played; empty if it is."""
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
    _conversation: CaseConversation | None = None
    _app: TaskWeaverApp | None = None
    _judge: StatementJudge | None = None
    _is_stopped: bool = False
    _began: float = field(default_factory=time.perf_counter)

    def run_within_limit(self) -> ResultRow:
        """Play the case; interrupt it at its limit, stop its application after that, leave it."""
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
        """End the case: its question, its judge, its further steps."""
        self._is_stopped = True
        if self._conversation is not None:
            self._conversation.interrupt()
        if self._judge is not None:
            self._judge.close()

    def _stop(self) -> None:
        """End the application of the case, its kernels included."""
        if self._app is not None:
            self._app.stop()

    def _run(self) -> ResultRow:
        try:
            with TemporaryDirectory(prefix="taskweaver-eval-", ignore_cleanup_errors=True) as name:
                return self._play(Path(name).resolve())
        except TaskWeaverError as error:
            return self._row("error", problems=(str(error),))
        except Exception as error:  # noqa: BLE001 - of any kind: the other cases go on
            return self._row("error", problems=(f"{type(error).__name__}: {error}",))

    def _row(self, outcome: Outcome, *, problems: tuple[str, ...] = ()) -> ResultRow:
        """Return the row of the case as it stands."""
        talk = self._conversation
        used = talk.usage if talk else Usage()
        return ResultRow(
            case=self.case.name,
            kind=self.case.kind,
            by=self.setup.by,
            model=self.setup.model,
            digest=self.case.digest,
            outcome=outcome,
            questions=len(talk.turns) if talk else 0,
            calls=used.calls,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            cached_tokens=used.cached_tokens,
            is_estimated=used.is_estimated,
            judge_calls=self._judge.usage.calls if self._judge else 0,
            time_s=round(time.perf_counter() - self._began, 3),
            is_held_out=self.case.held_out,
            problems=problems,
            notes=tuple(talk.notes) if talk else (),
            answers=tuple(answer for _, answer in talk.turns) if talk else (),
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
        model, recording = setup.function, None
        if setup.by == "recording":
            model = recording = Recording(case.name)
            config |= {"llm.api_type": "function", "llm.form": "tools", "ext_llms.llm_configs": {}}
        trust = setup.trust if own is None else True
        self._app = TaskWeaverApp(own or setup.project, config, model=model, trust=trust)
        with self._app as app:
            if setup.by == "live" and setup.function is None:
                self._judge = StatementJudge(app.app_injector.get(ModelServices))
            self._began = time.perf_counter()
            self._conversation = CaseConversation(case, app, recording, self._judge)
            return self._converse(self._conversation)

    def _converse(self, talk: CaseConversation) -> ResultRow:
        """Play the conversation, and score it; the time of the row is that of the conversation."""
        if not self._is_stopped:
            talk.play()
        played = self._row("failed")
        if not self._is_stopped:
            talk.check_all()
        points = [] if self._is_stopped else self.case.points
        weighed = [(point.weight, self._decide(talk, point)) for point in points]
        weighed += [(1.0, problem) for problem in talk.problems]
        met = sum(weight for weight, problem in weighed if not problem)
        score = met / sum(weight for weight, _ in weighed) if weighed else 1.0
        problems = tuple(problem for _, problem in weighed if problem)
        if self._is_stopped:
            return played.model_copy(update={"outcome": "timeout", "problems": problems})
        facts = {
            "outcome": "failed" if problems else "passed",
            "score": round(score, 4),
            "problems": problems,
            "judge_calls": self._judge.usage.calls if self._judge else 0,
        }
        return played.model_copy(update=facts)

    def _decide(self, talk: CaseConversation, point: ScoringPoint) -> str:
        """Return the problem of a scoring point; empty if it is met."""
        if point.eval_code:
            return talk.run_check(_cell(point.eval_code, talk.turns), point.score_point)
        return talk.judge(point.score_point)


def _prepared(case: EvalCase, folder: Path) -> dict[str, Any]:
    """Write the files of a case, and return the configuration that leads to them.

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
    except InvalidRequirement as error:
        raise CaseFailed(case, f"{text!r} is no requirement: {error}") from error
    except PackageNotFoundError as error:
        raise CaseFailed(case, f"the package of {text!r} is not installed.") from error
    if not requirement.specifier.contains(installed, prereleases=True):
        raise CaseFailed(case, f"{text} is needed, and {installed} is installed.")


def _run_command(case: EvalCase, command: str, folder: Path) -> None:
    """Run a command in a shell, with the user's rights.

    Raises:
        CaseFailed: If it cannot be run, fails, or takes longer than the case may.
    """
    with subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=case.limit_s)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # the shell alone would leave its programs
            if isinstance(error, subprocess.TimeoutExpired):
                raise CaseFailed(case.name, f"{command!r} takes too long: {error}") from error
            raise
    if process.returncode:
        status = process.returncode
        end = "cannot be run" if status == _NOT_FOUND else f"ended with {status}"
        said = output.decode("utf-8", "replace").strip()[-_SHOWN_CHARS:]
        raise CaseFailed(case.name, f"{command!r} {end}: {said}")


def _cell(code: str, turns: Turns) -> str:
    """Return the cell that decides a scoring point with code, which may be a function's body."""
    start = fill(_HISTORY, TURNS=repr(json.dumps(turns)))
    if not _returns(code):
        return start + code
    body = textwrap.indent(code, "    ")
    return (
        f"{start}def check_agent_response(agent_response):\n{body}\n"
        "assert check_agent_response(agent_response) is not False"
    )


def _returns(code: str) -> bool:
    """Return whether code returns outside of its own functions."""
    try:
        nodes: list[ast.AST] = list(parse(code).body)
    except (SyntaxError, ValueError):
        return False
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
    return False
