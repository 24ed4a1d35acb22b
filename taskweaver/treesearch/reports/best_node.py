"""The best node in a folder of its own: its workspace, and scripts that run it again."""

from __future__ import annotations

import os
import secrets
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from taskweaver.treesearch.execution.job import PACKAGES, run_variables
from taskweaver.treesearch.execution.results import PLACE, Evaluator, kept_evaluator
from taskweaver.treesearch.model.artifacts import (
    ScriptArtifact,
    artifact_commands,
    artifact_files,
)
from taskweaver.treesearch.model.idea import parse_idea
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.model.phase_plan import RESULT_FILE, PhasePlan
from taskweaver.treesearch.record.places import NodePlaces, RunPlaces, remove
from taskweaver.utils.file_system.safe_fs import Folder, copy_content
from taskweaver.utils.files import write_json, write_text
from taskweaver.utils.redact import redact_secrets_in

LARGEST_FILE_BYTES = 256 << 20
SHELL_SCRIPT = "reproduce.sh"
"""Name of the shell script."""
EVALUATOR = "evaluator"
"""Name of the folder beside it with the evaluator of the run."""
_IDEA_BYTES = 1 << 20
_RERUN = Path(__file__).with_name("rerun.py")
_PROGRAMS = "reproduce.py"
_WORKSPACE = "workspace"
_RAW_WORKING, _, _ = RESULT_FILE.partition("/")


def idea_text(run_dir: Path) -> str:
    """Return the idea of a run, cut where it is long; empty without one."""
    path = RunPlaces(run_dir).idea
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_IDEA_BYTES).decode("utf-8", "replace")


def evaluator_of(run_dir: Path) -> Evaluator | None:
    """Return the evaluator of a run; None where attempts measured themselves."""
    line = parse_idea(idea_text(run_dir)).evaluation
    return kept_evaluator(line, RunPlaces(run_dir).evaluator) if line else None


def reproduction(
    journal: Journal, node: Node, evaluator: Evaluator | None = None
) -> dict[str, str]:
    """Return the files that run a node again, by path beside its ``workspace``.

    An evaluator in files is beside them too, in a folder `EVALUATOR`.
    """
    measured = f"What it measures is then in {_WORKSPACE}/{RESULT_FILE}."
    if evaluator is not None:
        measured = "The evaluator of the run prints what it measures in its last line."
    head = [
        "#!/usr/bin/env bash",
        f"# Runs node {node.id} again; `python` should be that of the search.",
        "# There is no sandbox around it: it runs what a model wrote, with your rights.",
        f"# {measured}",
        'cd -- "$(dirname -- "$0")" || exit',
    ]
    if not isinstance(node.artifacts, ScriptArtifact):
        return {SHELL_SCRIPT: _text([*head, *_phases(node, evaluator)])}
    files = {_PROGRAMS: _RERUN.read_text("utf-8")}
    programs = []
    for number, before in enumerate((journal[id_] for id_ in node.line), 1):
        folder = f"before/{number:02}_{before.id}"
        files |= {
            f"{folder}/{name}": text for name, text in artifact_files(before.artifacts).items()
        }
        programs.append(f"{folder}:{before.id}:{before.seed}")
    programs.append(f"{_WORKSPACE}:{node.id}:{node.seed}")
    rerun = " ".join(["python", _PROGRAMS, *map(shlex.quote, programs)])
    return {SHELL_SCRIPT: _text([*head, rerun]), **files}


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _phases(node: Node, evaluator: Evaluator | None) -> Iterator[str]:
    """Yield the lines that compile, run and measure; each command in a shell of its own."""
    values = run_variables(node.seed, f"$PWD/{PACKAGES}")
    yield f"cd {_WORKSPACE} || exit"
    yield "export " + " ".join(f'{name}="{value}"' for name, value in values.items())
    commands = artifact_commands(node.artifacts)
    if commands["download"]:
        yield "# download: what these commands fetched is in the folder"
        yield from (f"# {line}" for text in commands["download"] for line in text.splitlines())
    if commands["compile"]:
        yield "# compile"
        workdir = node.artifacts.build.workdir if isinstance(node.artifacts, PhasePlan) else "."
        yield from _commands(commands["compile"], workdir)
    yield "# run"
    yield f"rm -rf {_RAW_WORKING} && mkdir {_RAW_WORKING} || exit"
    yield from _commands(commands["run"])
    if evaluator is not None:
        yield "# evaluate"
        if evaluator.folder is not None:
            yield f"rm -rf {PLACE} && cp -R ../{EVALUATOR} {PLACE} || exit"
        yield from _commands([evaluator.command])


def _commands(texts: Iterable[str], folder: str = ".") -> Iterator[str]:
    there = "" if folder == "." else f"cd -- {shlex.quote(folder)} || exit\n"
    yield from (f"( {there}{_whole(text)}\n) || exit" for text in texts)


def _whole(text: str) -> str:
    """Return a command so that nothing in it reaches beyond it, as plain as that can be."""
    is_open = "<<" in text or text.lstrip().startswith("#") or text.rstrip().endswith("\\")
    return f"bash --noprofile --norc -c {shlex.quote(text)}" if is_open else text


def write_best(journal: Journal, run_dir: Path) -> Path | None:
    """Write ``best/``: the best node's workspace, scripts that run it again, and ``node.json``.

    Links that lead out of the workspace, special files and files over `LARGEST_FILE_BYTES` are
    left out, and named in ``node.json``. Where the workspace is gone, the files are those that
    were proposed.

    Returns:
        The folder; None when no node measured anything.

    Raises:
        OSError: If it cannot be written; an older one is then left as it was.
    """
    node = journal.best()
    if node is None:
        return None
    target = run_dir / "best"
    draft = run_dir / f".best.{secrets.token_hex(6)}"
    workspace = NodePlaces(run_dir, node.id).workspace
    has_files = workspace.is_dir() and not workspace.is_symlink()
    try:
        left_out = _copy(workspace, draft / "workspace") if has_files else []
        if not has_files:
            _write_proposed(journal.files(node.id), draft / "workspace")
        evaluator = evaluator_of(run_dir)
        if evaluator is not None and evaluator.folder is not None:
            _copy(evaluator.folder, draft / EVALUATOR)
        for name, text in reproduction(journal, node, evaluator).items():
            write_text(draft / name, text)
        (draft / SHELL_SCRIPT).chmod(0o755)
        facts = {**node.to_dict(), "left_out": left_out}
        write_json(draft / "node.json", redact_secrets_in(facts))
        _replace(draft, target)
    finally:
        remove(draft)
    return target


def _copy(source: Path, target: Path) -> list[str]:
    """Copy a folder; return the paths that were left out."""
    left_out: list[str] = []
    target.mkdir(parents=True)
    with Folder.at(source) as workspace, Folder.at(target) as copy:
        for path, facts in workspace.walk():
            if not _copy_entry(workspace, copy, path, facts):
                left_out.append(path)
    return sorted(left_out)


def _copy_entry(workspace: Folder, copy: Folder, path: str, facts: os.stat_result) -> bool:
    """Copy a file, or a link to an entry inside; return whether it is wanted."""
    copy.make_folders(PurePosixPath(path).parent)
    if stat.S_ISLNK(facts.st_mode):
        target = workspace.link_target(path)
        if not _is_inside(workspace, os.path.normpath(PurePosixPath(path).parent / target)):
            return False
        copy.make_link(path, target)
        return True
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE_BYTES:
        return False
    with workspace.open_file(path) as old, copy.create_file(path) as new:
        copy_content(old, new)
        os.fchmod(new.fileno(), facts.st_mode & 0o755 | 0o600)
    return True


def _is_inside(workspace: Folder, path: str) -> bool:
    try:
        return path != "." and workspace.stat(path) is not None
    except OSError:  # it leads outside, or by a further link
        return False


def _write_proposed(files: Mapping[str, str], target: Path) -> None:
    target.mkdir(parents=True)
    home = target.resolve()
    for name, content in files.items():
        path = (home / name).resolve()
        if path.is_relative_to(home) and path != home:
            write_text(path, content)


def _replace(draft: Path, target: Path) -> None:
    """Replace a folder by another; the old one is removed afterwards."""
    if not target.exists():
        draft.replace(target)
        return
    old = target.with_name(f".old{draft.name}")
    target.replace(old)
    try:
        draft.replace(target)
    except BaseException:
        old.replace(target)
        raise
    remove(old)
