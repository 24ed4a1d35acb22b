"""``taskweaver doctor``: checks of everything a session needs, with remedies."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Literal

import click

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.modules import PACKAGE, ExecutionConfig, FoldersConfig
from taskweaver.ces.common import Client
from taskweaver.ces.sandbox.sandbox import SandboxChoice, is_confined
from taskweaver.cli.opening import stored_consent
from taskweaver.cli.printing import print_json, safe, say, say_marked
from taskweaver.code_interpreter.code_executor import CodeExecutor
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.console.terminal.blocks import format_seconds
from taskweaver.errors import TaskWeaverError
from taskweaver.llm.learnt import LearntFacts, stored_facts
from taskweaver.llm.learnt import forget_models as forget_learnt
from taskweaver.llm.services import ModelServices
from taskweaver.llm.setup import OFFLINE, ModelSetup
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.conversation import Conversation, ConversationError
from taskweaver.memory.experience import Experience
from taskweaver.plugin.errors import PluginError
from taskweaver.plugin.spec import PluginEntry
from taskweaver.role.errors import RoleError, UnknownRole
from taskweaver.role.examples import load_examples
from taskweaver.session.health import check_session
from taskweaver.session.storage.stored_sessions import session_folders
from taskweaver.trust.opening import Inspection
from taskweaver.utils.files import read_yaml
from taskweaver.utils.redact import redact
from taskweaver.utils.system.installation import command, missing, own_command
from taskweaver.utils.system.platform import restrictions, system_name
from taskweaver.utils.text import counted

Status = Literal["ok", "warn", "fail"]
_COLORS = {"ok": "green", "warn": "yellow", "fail": "red"}
_SHOWN_MODELS = 8
_MOST_SESSIONS = 50
_WITH_EXAMPLES = ("planner", "code_generator")
_CHOOSE = "`taskweaver setup` chooses the model that answers."
_PROMISES = "See 'What is promised, and what is not' in the documentation."
_USEFUL = {"pyarrow": "Parquet files"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check.

    Attributes:
        status: Its verdict; ``warn`` leaves a session usable.
        detail: The observation.
        fix: The remedy; empty when none is needed.
    """

    name: str
    status: Status
    detail: str
    fix: str = ""


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option(
    "--forget-models", is_flag=True, help="First forget what was learnt of models' endpoints."
)
@click.pass_obj
def doctor_command(project: Path | None, *, as_json: bool, forget_models: bool) -> None:
    """Check what works here, and name the remedy for the rest.

    The exit status is 1 when a check fails.
    """
    if forget_models:
        forget_learnt()
    findings = []
    for found in _findings(project):
        finding = replace(found, detail=redact(found.detail), fix=redact(found.fix))
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        print_json(findings)
    sys.exit(any(finding.status == "fail" for finding in findings))


def _print(finding: CheckResult) -> None:
    detail, fix = (" ".join(text.split()) for text in (finding.detail, finding.fix))
    mark = f"{finding.status:5}"
    say_marked(mark, _COLORS[finding.status], f"{finding.name:9} {detail}")
    if fix:
        say(f"{'':15} -> {fix}")


def _findings(project: Path | None) -> Iterator[CheckResult]:
    yield CheckResult("python", "ok", f"{platform.python_version()} ({sys.executable})")
    yield _system()
    yield _packages()
    try:
        is_granted, inspection = stored_consent(project)
        app = TaskWeaverApp(project, trust=inspection.digests if is_granted else False)
    except TaskWeaverError as error:
        yield CheckResult("config", "fail", str(error), "Correct it; the other checks need it.")
        return
    with app:
        yield from _trust(inspection, is_granted=is_granted)
        yield from _configuration(app)
        yield _guarded("writing", "Choose another workspace.workspace_path.", lambda: _writing(app))
        yield from _models(app)
        yield from _learnt_models()
        yield from _kernel(app)
        yield _sandbox(app)
        yield from (CheckResult("limit", "ok", str(bound)) for bound in app.bounds)
        yield from _roles(app)
        yield from _tools(app)
        yield from _contents(app)
        yield from _sessions(app)


def _guarded(name: str, fix: str, look: Callable[[], CheckResult]) -> CheckResult:
    try:
        return look()
    except (TaskWeaverError, OSError) as error:
        return CheckResult(name, "fail", str(error), fix)


def _system() -> CheckResult:
    lacking = restrictions()
    return CheckResult("system", "warn" if lacking else "ok", lacking or system_name())


def _packages() -> CheckResult:
    lines = missing()
    if lines:
        return CheckResult("packages", "fail", f"missing: {', '.join(lines)}", command(lines))
    lacking = [f"{name} for {what}" for name, what in _USEFUL.items() if find_spec(name) is None]
    extra = f"; not installed: {', '.join(lacking)}" if lacking else ", Parquet and Excel too"
    return CheckResult("packages", "ok", f"all there{extra}")


def _trust(inspection: Inspection, *, is_granted: bool) -> Iterator[CheckResult]:
    """List the effects of opening the project. Effects without consent are off in later checks."""
    if not is_granted and inspection.lines:
        fix = f"Decide: {own_command('trust', inspection.folder)}"
        for line in inspection.lines:
            yield CheckResult("trust", "warn", f"off, not trusted: {line}", fix)
        return
    effects = counted(len(inspection.lines), "effect")
    detail = f"trusted with {effects}" if inspection.lines else "runs and loosens nothing"
    yield CheckResult("trust", "ok", detail)


def _configuration(app: TaskWeaverApp) -> Iterator[CheckResult]:
    broken = {str(error) for error in (*app.plugins.broken.values(), *app.roles.broken)}
    shown = {*broken, restrictions(), app.trust_notice}  # shown by themselves
    odd = [warning for warning in app.warnings if warning not in shown]
    for warning in odd:
        yield CheckResult("config", "warn", warning)
    if not odd:
        yield CheckResult("config", "ok", f"{app.app_dir}")


def _sandbox(app: TaskWeaverApp) -> CheckResult:
    choice = app.app_injector.get(SandboxChoice)
    if choice.policy is not None and not choice.warning:
        return CheckResult("sandbox", "ok", app.sandbox)
    return CheckResult(
        "sandbox",
        "warn",
        choice.warning or app.sandbox,
        _PROMISES,
    )


def _writing(app: TaskWeaverApp) -> CheckResult:
    folder = app.app_injector.get(FoldersConfig).workspace
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        free = os.statvfs(folder) if hasattr(os, "statvfs") else None
    room = f", {free.f_bavail * free.f_frsize / 2**30:,.1f} GiB free" if free else ""
    return CheckResult("writing", "ok", f"{folder}{room}")


def _models(app: TaskWeaverApp) -> Iterator[CheckResult]:
    """Ask the model a test question, and list further models of this machine."""
    services = app.app_injector.get(ModelServices)
    setup = ModelSetup(app.config, services, is_confined, is_trusted=not app.withheld)
    present = None

    def ask() -> CheckResult:
        nonlocal present
        present = setup.present()
        test = setup.test(present)
        status: Status = "ok" if test.is_usable else "warn" if test.state == "wrong" else "fail"
        announced = app.announcement.removeprefix("model: ")
        fix = "" if test.is_usable else _CHOOSE
        return CheckResult("model", status, f"{announced}; {test.detail}", fix)

    yield _guarded("model", _CHOOSE, ask)
    listed = []
    with suppress(TaskWeaverError):  # of the model, which the test question has named
        others = [one for one in setup.found()[0] if present is None or one.id != present.id]
        listed = [f"{one.title} ({one.line})" for one in others if one.provider != OFFLINE]
    if listed:
        yield CheckResult("model", "ok", f"also here: {', '.join(listed)}", _CHOOSE)


def _learnt_models() -> Iterator[CheckResult]:
    """List the facts learnt of models, with which sessions begin."""
    kept, usual = stored_facts(), asdict(LearntFacts())
    for item in kept[:_SHOWN_MODELS]:
        at = datetime.fromtimestamp(item.at).astimezone().strftime("%Y-%m-%d %H:%M")
        facts = "; ".join(
            f"{name.replace('_', ' ')}: {value}"
            for name, value in asdict(item.facts).items()
            if value != usual[name]
        )
        detail = f"{item.model} at {item.address}: {facts} (since {at})"
        yield CheckResult("endpoint", "ok", detail)
    if len(kept) > _SHOWN_MODELS:
        detail = f"and {counted(len(kept) - _SHOWN_MODELS, 'further model')}"
        yield CheckResult("endpoint", "ok", detail)


def _kernel(app: TaskWeaverApp) -> Iterator[CheckResult]:
    """Start a kernel where code runs, compute a sum, and load every plugin."""
    execution = app.app_injector.get(ExecutionConfig)
    policy = app.app_injector.get(SandboxChoice).policy
    fix = "Check that `python -m ipykernel --version` works."
    if execution.server:
        fix = f"Check that {execution.server} runs and takes execution.server_token."
    with tempfile.TemporaryDirectory(prefix="taskweaver-doctor-") as folder:
        manager = execution.kernels(Path(folder), policy)
        try:
            client = manager.get_session_client("doctor", session_dir=folder, cwd=folder)
            started = _guarded("kernel", fix, lambda: _compute(client))
            yield started
            if manager.start_problem:
                yield CheckResult(
                    "warm start",
                    "warn",
                    manager.start_problem,
                    _PROMISES,
                )
            if started.status == "ok":
                yield from _loaded(app, client)
        finally:
            manager.clean_up()


def _compute(client: Client) -> CheckResult:
    since = monotonic()
    result = client.execute_code("doctor", "1+1")
    took = format_seconds(monotonic() - since)
    if str(result.output) != "2":
        return CheckResult(
            "kernel", "fail", f"1+1 gave {result.output or result.error!r} in {took}"
        )
    return CheckResult("kernel", "ok", f"1+1 is 2, {took} after the start")


def _loaded(app: TaskWeaverApp, client: Client) -> Iterator[CheckResult]:
    """Load the plugins as a session does, and list the loaded plugins."""
    executor = CodeExecutor(client, app.plugins, app.app_injector.get(TelemetryLogger))
    executor.load_plugins()
    names = [entry.name for entry in executor.plugins]
    off = []
    for path in sorted(Path(app.config.get_path("plugin.base_path")).glob("[!.]*.yaml")):
        with suppress(PluginError):  # listed as broken
            entry = PluginEntry.from_yaml_file(path)
            off += [] if entry.enabled else [entry.name]
    rest = f"; switched off: {', '.join(off)}" if off else ""
    yield CheckResult("plugins", "ok", f"{', '.join(names) or 'none'}{rest}")
    for reason in executor.broken.values():
        yield CheckResult("broken", "fail", reason, "Correct the plugin, or remove it.")


def _roles(app: TaskWeaverApp) -> Iterator[CheckResult]:
    """Import each role. A broken role that takes part is a failure."""
    names, wanted = app.roles.get_role_name_list(), app.config.get_list("session.roles")
    own = []
    problems = {Path(error.role).name: error.problem for error in app.roles.broken}
    problems |= {name: UnknownRole(name, names).problem for name in wanted if name not in names}
    for name in names:
        entry = app.roles.get(name)
        if entry.path is not None and PACKAGE not in entry.path.parents:
            own.append(name)
        try:
            app.roles.load_class(entry)
        except RoleError as error:
            problems[name] = error.problem
    of_project = f" (of the project: {', '.join(own)})" if own else ""
    taking_part = f"; taking part: {', '.join(wanted)}"
    yield CheckResult("roles", "ok", f"{', '.join(names)}{of_project}{taking_part}")
    for name, problem in problems.items():
        status: Status = "fail" if name in wanted else "warn"
        fix = "Correct it, or take it out of session.roles." if name in wanted else ""
        yield CheckResult("broken", status, f"role {name}: {problem}", fix)
    for broken in app.plugins.broken.values():
        yield CheckResult("broken", "fail", str(broken), "Correct the file, or remove it.")


def _tools(app: TaskWeaverApp) -> Iterator[CheckResult]:
    """Start the MCP servers and list their tools."""
    servers = app.mcp_servers
    if not servers.names:
        return
    offer = servers.offer()
    for name in servers.names:
        functions = [tool.function for tool in offer.tools.values() if tool.server == name]
        if functions:
            yield CheckResult("mcp", "ok", f"{name}: {', '.join(functions)}")
    for problem in offer.problems:
        yield CheckResult("mcp", "warn", safe(str(problem)), "See 'MCP' in the documentation.")


def _contents(app: TaskWeaverApp) -> Iterator[CheckResult]:
    """Read examples and experiences, and list the files that are ignored."""
    src = app.config
    for role in _WITH_EXAMPLES:
        folder, broken = Path(src.get_path(f"{role}.example_base_path")), list[str]()
        usable = len(load_examples(folder, tell=broken.append))  # the application names the broken
        off = len(list(folder.glob("*.yaml"))) - usable - len(broken)
        detail = f"{role}: {usable}" + (f", {off} switched off" if off else "")
        yield CheckResult("examples", "ok", detail)
    problems = []
    experiences = sorted(Path(src.get_path("session.experience_dir")).glob("*exp_*.yaml"))
    for path in experiences:
        try:
            if path.name.startswith("raw_exp_"):
                Conversation.from_yaml(path)
            else:
                Experience.from_dict({"exp_id": path.stem, **read_yaml(path)})
        except (ConversationError, OSError, ValueError, KeyError, TypeError) as error:
            problems.append(f"{path}: {error!r}" if isinstance(error, KeyError) else f"{error}")
    yield CheckResult("learnt", "ok", f"experiences: {len(experiences) - len(problems)}")
    for problem in problems:
        yield CheckResult("broken", "fail", problem, "Correct the file, or remove it.")
    for line in _unread_files(src):
        yield CheckResult("not read", "warn", line)


def _unread_files(src: AppConfigSource) -> Iterator[str]:
    """Yield a line with the reason for each ignored file of the project."""
    yield from _unread_plugins(Path(src.get_path("plugin.base_path")))
    for role in _WITH_EXAMPLES:
        folder = Path(src.get_path(f"{role}.example_base_path"))
        if not src.get_bool(f"{role}.dynamic_example_sub_path"):
            for path in sorted(folder.glob("*/*.yaml")):
                yield f"{path}: examples in folders need {role}.dynamic_example_sub_path"
        for path in sorted(folder.glob("*.yml")):
            yield f"{path}: examples end in .yaml"
    for path in sorted(Path(src.get_path("document_retriever.index_folder")).glob("*.faiss")):
        yield f"{path}: put the documents themselves there, they are indexed here"


def _unread_plugins(plugins: Path) -> Iterator[str]:
    described = set()
    for path in plugins.glob("[!.]*.yaml"):
        with suppress(OSError, ValueError, AttributeError):  # reported as broken
            data = read_yaml(path)
            name = data.get("code") or data.get("name") or path.stem
            described.add(str(name).removesuffix(".py"))
    for path in sorted(plugins.glob("[!.]*.py")):
        if path.stem not in described:
            yield f"{path}: no .yaml file there names it"
    for path in sorted(plugins.glob("*.yml")):
        yield f"{path}: plugins end in .yaml"
    if any((plugins / ".meta").glob("meta_*.yaml")):
        yield f"{plugins / '.meta'}: vectors of plugins are not used"


def _sessions(app: TaskWeaverApp) -> Iterator[CheckResult]:
    """Check the newest stored sessions without changing the folders."""
    folders = session_folders(app.app_injector.get(FoldersConfig).workspace / "sessions")
    checked = [check_session(folder) for folder in folders[-_MOST_SESSIONS:]]
    odd = [health for health in checked if health.condition not in ("sound", "open")]
    unchecked = f"; {len(folders) - len(checked)} older ones were not checked"
    detail = f"{len(checked) - len(odd)} of {len(checked)} are sound"
    yield CheckResult("sessions", "ok", detail + unchecked * (len(checked) < len(folders)))
    for health in odd:
        detail = "; ".join((f"{health.session_id} is {health.condition}", *health.findings))
        if health.condition == "damaged":
            repair = own_command("sessions", "repair", health.session_id, project=app.app_dir)
            yield CheckResult("sessions", "fail", detail, f"Save the rest: {repair}")
        else:
            yield CheckResult("sessions", "warn", detail)
