"""``taskweaver setup``: the models of this machine, a test question, and the choice of one."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import click

from taskweaver.ces.sandbox.sandbox import is_confined
from taskweaver.cli.opening import read_source, stored_consent
from taskweaver.cli.options import JSON
from taskweaver.cli.printing import print_json, say, say_marked
from taskweaver.config.config_mgt import register_secrets
from taskweaver.config.files import user_file
from taskweaver.llm.errors import ModelError
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
    Scope,
)
from taskweaver.llm.trial import ModelTest
from taskweaver.utils.redact import redact, register_secret

_ABOUT = (
    "Which model answers? A local model sends nothing out. A remote model is sent your questions,\n"
    "the column names, some values and the results.\n"
)
_MOST_NAMES = 20
_PROVIDERS = ", ".join(name for name, one in PRESETS.items() if one.needs_key)


@click.command("setup")
@click.option("--model", "wanted", metavar="NAME", help="Choose this model, without questions.")
@click.option(
    "--provider",
    metavar="NAME|URL",
    help=f"Add a model of a provider or address, with a key: {_PROVIDERS}, or http(s)://.../v1.",
)
@click.option("--all-projects", is_flag=True, help="Choose for all projects, not for this one.")
@click.option("--yes", is_flag=True, help="Take the first model of the list.")
@JSON
@click.pass_obj
def setup_command(
    project: Path | None,
    *,
    wanted: str | None,
    provider: str | None,
    all_projects: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Choose the model that answers: a model found here, or of a provider with a key.

    Without a terminal and without an option the models are listed.
    """
    is_granted, _ = stored_consent(project)
    src = read_source(project)
    register_secrets(src)
    with ModelServices(src) as services:
        setup = ModelSetup(src, services, is_confined, is_trusted=is_granted)
        is_asking = _is_terminal() and not (wanted or yes or as_json)
        if setup.fixed_by and (wanted or provider or yes):
            raise click.UsageError(setup.fixed_by)
        test: ModelTest | None = None
        model = None
        if not provider:
            model = _chosen(
                setup, wanted or ("" if yes else None), is_asking=is_asking, as_json=as_json
            )
            if model is None and is_asking and not setup.fixed_by:
                provider = click.prompt(f"Address, or provider ({_PROVIDERS})")
                default = PRESETS[provider].model if provider in PRESETS else None
                wanted = click.prompt("Model", default)
        if provider:
            model, test = _added(setup, provider, wanted or "")
        if model is not None:
            scope: Scope = "user" if all_projects else setup.scopes[0]
            _use(setup, model, scope, test, is_asking=is_asking, as_json=as_json)


def _chosen(
    setup: ModelSetup, wanted: str | None, *, is_asking: bool, as_json: bool
) -> FoundModel | None:
    """Return the chosen model (the first for an empty name), or None without a choice."""
    models, present = setup.found()
    if wanted is not None:
        names = [m for m in models if wanted in (m.id, m.name, m.provider)]
        names = names if wanted else [m for m in models if m.provider != OFFLINE]
        if not names and not wanted:
            raise click.ClickException(f"Nothing was found, and nothing was changed. {_small()}")
        if not names:
            known = [f"{m.name} ({m.id})" if m.provider == OFFLINE else m.id for m in models]
            ids = ", ".join(known[:_MOST_NAMES]) + (", ..." if known[_MOST_NAMES:] else "")
            raise click.UsageError(f"There is no model {wanted}; there are: {ids}.")
        return names[0]
    if as_json:
        print_json([{"id": m.id, **asdict(m), "is_answering": m == present} for m in models])
        return None
    say(_ABOUT)
    width = max(len(model.title) for model in models)
    for number, model in enumerate(models, 1):
        now = ", answers now" if model == present else ""
        say(f"{number:3}  {model.title:{width}}  {model.line}{now}")
    if all(model.provider == OFFLINE or not model.is_local for model in models):
        say(f"\n{_small()}")
    if not is_asking or setup.fixed_by:
        hint = "Choose one with --model NAME, or another provider with --provider."
        say(f"\n{setup.fixed_by or hint}")
        return None
    say(f"{len(models) + 1:3}  Another provider, with its key\n")
    number = click.prompt("Number", 1, type=click.IntRange(1, len(models) + 1))
    return [*models, None][number - 1]


def _small() -> str:
    """Return the way to a small local model, in a sentence."""
    first = "" if shutil.which("ollama") else "install Ollama from https://ollama.com, then "
    needs = f"{SMALL_GB} GB, needs {SMALL_MEMORY_GB} GB of memory, no account"
    command = f"{first}`ollama pull {SMALL_MODEL}`, then run `taskweaver setup` again."
    return f"A small local model ({needs}): {command}"


def _added(setup: ModelSetup, provider: str, name: str) -> tuple[FoundModel, ModelTest]:
    """Ask for the key of a model, test the model, and keep the key if the model answers."""
    address = provider if "://" in provider else ""
    try:
        model = setup.new_model(OTHER if address else provider, name, address)
    except ModelError as error:
        raise click.UsageError(redact(error.detail)) from None
    if _is_terminal():
        say("The key is kept in a file that only you can read, never in the project.")
        key = click.prompt("Key", "", hide_input=True, show_default=False)
    else:
        key = sys.stdin.readline()
    register_secret(key.strip())
    test, added = setup.add(model, key.strip())
    if added is None:
        raise click.ClickException(test.detail)
    return added, test


def _use(
    setup: ModelSetup,
    model: FoundModel,
    scope: Scope,
    test: ModelTest | None,
    *,
    is_asking: bool,
    as_json: bool,
) -> None:
    """Test the model unless tested already, and make the model the default."""
    is_offline = model.provider == OFFLINE
    is_told = not (as_json or is_offline)
    if is_told and test is None:
        cost = "" if model.is_free else " (costs less than 1 cent)"
        say(f"Testing {model.title}{cost} ...")
    test = test or setup.test(model)
    if is_told:
        verdict = {"works": "works", "no-tools": "answers"}.get(test.state, "does not work")
        color = "green" if test.is_usable else "red"
        say_marked(f"{model.title} {verdict}.", color, test.detail)
    facts = {"id": model.id, **asdict(test), "is_chosen": test.is_usable}
    if not test.is_usable and not (is_asking and click.confirm("Use it all the same?")):
        if as_json:
            print_json(facts)
        say("Nothing was changed.", err=True)
        sys.exit(1)
    if scope == "project" and is_asking and not click.confirm("For this project alone?", True):
        scope = "user"
    note = setup.choose(model, scope)
    file = user_file() if scope == "user" else "taskweaver_config.json"
    if as_json:
        print_json(facts | {"file": str(file), "note": note})
        return
    name = model.label if is_offline else model.title
    say(note or f"{name} answers from now on: {file}. `taskweaver setup` changes it.")


def _is_terminal() -> bool:
    return sys.stdin.isatty()
