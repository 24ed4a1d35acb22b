"""``taskweaver plugin``: plugins of a project, written and tested."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from taskweaver.app.modules import ExecutionConfig
from taskweaver.ces.errors import KernelError
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.sandbox.sandbox import SandboxChoice
from taskweaver.cli.open_app import open_app
from taskweaver.cli.opening import read_source
from taskweaver.cli.printing import safe, say_marked
from taskweaver.code_interpreter.code_executor import CodeExecutor
from taskweaver.logging.log import TelemetryLogger
from taskweaver.plugin.errors import PluginError
from taskweaver.plugin.registry import PluginRegistry, problem_of_name
from taskweaver.plugin.spec import PluginEntry
from taskweaver.utils.system.installation import own_command
from taskweaver.utils.text import counted

_TEMPLATE = Path(__file__).with_name("plugin_template.txt")
_COLORS = {"ok": "green", "FAIL": "red"}
_EXAMPLES = """\b
Examples:
  taskweaver -p sales plugin new exchange_rate
  taskweaver -p sales plugin test exchange_rate"""


@click.group("plugin", epilog=_EXAMPLES)
def plugin_command() -> None:
    """Write and test functions of your own that the model can call."""


@plugin_command.command()
@click.argument("name")
@click.pass_obj
def new(project: Path | None, name: str) -> None:
    """Write a working plugin with a test, for you to change."""
    src = read_source(project, has_code=False)
    registry = PluginRegistry(src.get_path("plugin.base_path"))
    problem = problem_of_name(name)
    if problem:
        raise PluginError(name, f"{problem}.")
    if name in registry.plugins:
        raise PluginError(name, f"there is one already: {registry.plugins[name].path}.")
    path = registry.folder / f"{name}.py"
    if path.with_suffix(".yaml").exists():
        raise PluginError(name, f"{path.with_suffix('.yaml')} describes it already.")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_TEMPLATE.read_text("utf-8").replace("NAME", name))
    except FileExistsError:
        raise PluginError(name, f"there is a file {path} already.") from None
    click.echo(f"{path} is a plugin now; change it to what you need.")
    click.echo(f"Test it: {own_command('plugin', 'test', name, project=project)}")


@plugin_command.command()
@click.argument("name", required=False)
@click.pass_obj
def test(project: Path | None, name: str | None) -> None:
    """Load a plugin, or all plugins, into a kernel and run the tests in the files.

    The exit status is 1 when a plugin does not load or a test fails.
    """
    with open_app(project) as app, tempfile.TemporaryDirectory() as folder:
        registry = app.plugins
        if name is not None and name not in {**registry.plugins, **registry.broken}:
            known = ", ".join(sorted(registry.plugins)) or "none"
            raise PluginError(name, f"there is none in {registry.folder}; there are: {known}.")
        limits = app.app_injector.get(ExecutionConfig).limits
        policy = app.app_injector.get(SandboxChoice).policy
        manager = code_execution_service_factory(folder, limits=limits, sandbox=policy)
        try:
            client = manager.get_session_client("test", session_dir=folder, cwd=f"{folder}/cwd")
            executor = CodeExecutor(client, registry, app.app_injector.get(TelemetryLogger))
            executor.load_plugins()
            broken = {key: str(error) for key, error in registry.broken.items()} | executor.broken
            outcomes = list(_results(client, executor.plugins, broken, name))
        finally:
            manager.clean_up()
    failed = sum(outcomes)
    passed = len(outcomes) - failed
    click.echo(f"{passed} passed, {counted(failed, 'failure')}." if outcomes else "No plugins.")
    sys.exit(failed > 0)


def _results(
    client: Kernel, entries: list[PluginEntry], broken: dict[str, str], only: str | None
) -> Iterator[bool]:
    """Run the tests, print a line for each test, and yield whether the test failed."""
    for entry in entries:
        if only not in {None, entry.name}:
            continue
        try:
            results = client.test_plugin(entry.name)
        except KernelError as error:
            results = [["tests", f"{entry.path}: {error}"]]
        for test, failure in results or [["loads; it has no test", ""]]:
            yield _tell(f"{entry.name}: {test}", failure)
    for name, reason in sorted(broken.items()):
        if only in {None, name}:
            yield _tell(name, reason)


def _tell(what: str, failure: str) -> bool:
    sign = "FAIL" if failure else "ok"
    lines = safe(failure).strip().splitlines()
    reason = f": {lines[-1]}" if lines else ""
    say_marked(f"{sign:4}", _COLORS[sign], f"{what}{reason}")
    for line in lines[:-1]:
        click.echo(f"       {line}")
    return bool(failure)
