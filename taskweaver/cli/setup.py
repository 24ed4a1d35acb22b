"""``taskweaver setup``: the models of this machine, a test question, and the choice of one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from taskweaver.ces.sandbox.sandbox import is_confined
from taskweaver.cli.opening import read_source, stored_consent
from taskweaver.cli.options import JSON
from taskweaver.cli.printing import print_json, say, say_marked
from taskweaver.config.config_mgt import register_secrets
from taskweaver.config.files import user_file
from taskweaver.llm.providers.presets import PRESETS
from taskweaver.llm.services import ModelServices
from taskweaver.llm.setup import (
    OFFLINE,
    OTHER,
    SMALL_GB,
    SMALL_MEMORY_GB,
    SMALL_MODEL,
    FoundModel,
    ModelSetup,
    ModelTest,
    Scope,
)
from taskweaver.utils.redact import register_secret

_ABOUT = (
    "Which model answers? A local model sends nothing out. A remote model is sent your questions,\n"
    "the column names, some values and the results.\n"
)
_GET = f"ollama pull {SMALL_MODEL}"


@click.command("setup")
@click.option("--model", "wanted", metavar="NAME", help="Choose this model of the list.")
@click.option(
    "--provider",
    type=click.Choice([*(name for name, one in PRESETS.items() if one.needs_key), OTHER]),
    help="Add a model of a provider; the key comes from the terminal or standard input.",
)
@click.option("--address", metavar="URL", default="", help="Address of another provider.")
@click.option("--all-projects", is_flag=True, help="Choose for all projects, not for this one.")
@click.option("--yes", is_flag=True, help="Ask nothing: test, and use what answers rightly.")
@JSON
@click.pass_obj
def setup_command(  # noqa: PLR0913 - one for each option
    project: Path | None,
    /,
    *,
    wanted: str | None,
    provider: str | None,
    address: str,
    all_projects: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Choose the model that answers: one found here, or one of a provider with its key.

    Without a terminal and without an option the models are listed.
    """
    is_granted, _ = stored_consent(project)
    src = read_source(project)
    register_secrets(src)
    with ModelServices(src) as services:
        setup = ModelSetup(src, services, is_confined, is_trusted=is_granted)
        dialog = _Dialog(setup, is_silent=yes or as_json or not _is_terminal())
        if setup.fixed_by and (wanted or provider or address or yes):
            raise click.UsageError(setup.fixed_by)
        if provider or address:
            model: FoundModel | None = dialog.added(provider or OTHER, wanted or "", address)
        else:
            model = dialog.chosen(wanted, is_first=yes, as_json=as_json)
        if model is not None:
            dialog.use(model, "user" if all_projects else setup.scopes[0], as_json=as_json)


class _Dialog:
    """Questions at a terminal; a silent one takes the defaults."""

    def __init__(self, setup: ModelSetup, *, is_silent: bool) -> None:
        self._setup = setup
        self._is_silent = is_silent
        self._test: ModelTest | None = None

    def chosen(self, wanted: str | None, *, is_first: bool, as_json: bool) -> FoundModel | None:
        """Return the model that is wanted, or chosen from the list; None if it is only listed."""
        models, present = self._setup.found()
        if wanted is not None:
            return _named(models, wanted)
        if is_first:
            return models[0]
        if as_json:
            rows = [{"id": m.id, **asdict(m), "is_answering": m == present} for m in models]
            print_json(rows)
            return None
        say(_ABOUT)
        width = max(len(model.title) for model in models)
        for number, model in enumerate(models, 1):
            now = ", answers now" if model == present else ""
            say(f"{number:3}  {model.title:{width}}  {model.line}{now}")
        if not any(model.is_local and model.provider != OFFLINE for model in models):
            first = (
                "" if shutil.which("ollama") else "install Ollama from https://ollama.com, then "
            )
            say(f"\nA small local model ({SMALL_GB} GB, needs {SMALL_MEMORY_GB} GB of memory, no"
                f" account): {first}{_GET}")  # fmt: skip
        if self._is_silent or self._setup.fixed_by:
            hint = "Choose one with --model NAME, or another provider with --provider."
            say(f"\n{self._setup.fixed_by or hint}")
            return None
        say(f"{len(models) + 1:3}  Another provider, with its key\n")
        number = click.prompt("Number", 1, type=click.IntRange(1, len(models) + 1))
        return models[number - 1] if number <= len(models) else self._asked()

    def _asked(self) -> FoundModel:
        names = [name for name, one in PRESETS.items() if one.needs_key]
        provider = click.prompt("Provider", type=click.Choice([*names, OTHER]))
        address = click.prompt("Address, up to /v1") if provider == OTHER else ""
        model = click.prompt("Model", PRESETS[provider].model if provider in PRESETS else None)
        return self.added(provider, model, address)

    def added(self, provider: str, name: str, address: str) -> FoundModel:
        """Ask for the key of a model, test it, and keep it if it answers."""
        model = self._setup.new_model(provider, name, address)
        if _is_terminal():
            say("The key is kept in a file that only you can read, never in the project.")
            key = click.prompt("Key", "", hide_input=True, show_default=False)
        else:
            key = sys.stdin.readline()
        register_secret(key.strip())
        self._test, added = self._setup.add(model, key.strip())
        if added is None:
            say(self._test.detail, err=True)
            sys.exit(1)
        return added

    def use(self, model: FoundModel, scope: Scope, *, as_json: bool) -> None:
        """Test a model, and let it answer from now on."""
        cost = "" if model.is_free else " (costs less than 1 cent)"
        is_told = not as_json and model.provider != OFFLINE
        if is_told and not self._test:
            say(f"Testing {model.title}{cost} ...")
        test = self._test or self._setup.test(model)
        if is_told:
            verdict = {"works": "works", "no-tools": "answers"}.get(test.state, "does not work")
            color = "green" if test.is_usable else "red"
            say_marked(f"{model.title} {verdict}.", color, test.detail)
        if not (test.is_usable or self._agrees("Use it all the same?")):
            if as_json:
                print_json({"id": model.id, **asdict(test), "is_chosen": False})
            say("Nothing was changed.", err=True)
            sys.exit(1)
        if scope == "project" and not (self._is_silent or self._agrees("For this project alone?")):
            scope = "user"
        note = self._setup.choose(model, scope)
        file = user_file() if scope == "user" else "taskweaver_config.json"
        if as_json:
            facts = {"id": model.id, **asdict(test), "is_chosen": True, "file": str(file)}
            print_json(facts | {"note": note})
            return
        name = model.label if model.provider == OFFLINE else model.title
        say(note or f"{name} answers from now on: {file}. `taskweaver setup` changes it.")

    def _agrees(self, question: str) -> bool:
        return not self._is_silent and click.confirm(question)


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _named(models: Sequence[FoundModel], wanted: str) -> FoundModel:
    found = [model for model in models if wanted in (model.id, model.name, model.provider)]
    ids = ", ".join(model.id for model in models)
    if not found:
        raise click.UsageError(f"There is no model {wanted}; there are: {ids}.")
    return found[0]
