"""The plan of an attempt, ``phase_artifacts``: its downloads, files, compile and run commands.

Its form is read with patience, its content is not: a part that cannot be executed as it is written
is a `PhasePlanError` that names the place.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.model import plan_checks as checks
from taskweaver.treesearch.model.plan_checks import CommandText

RESULT_FILE = "working/result.json"
"""What a run writes: ``{"metric": number or {data set: number}, "valid": true, "details": {...}}``.

A file is this run's own: the folder ``working`` is emptied before each run.
"""
WORKING = RESULT_FILE.partition("/")[0]
"""Folder of what a run writes."""
PHASES = ("download", "coding", "compile", "run")
"""Phases of an attempt in order, and sections of its plan; phase 0, the plan, comes before them."""
MAX_FILES = 500
MAX_FILE_BYTES = 5 << 20
MAX_ALL_BYTES = 50 << 20
COMPILED = frozenset({"c", "cpp", "fortran"})
_LANGUAGES = COMPILED | {"python", "other"}
_ALIASES = {
    "c++": "cpp", "cxx": "cpp", "cc": "cpp", "py": "python", "python3": "python", "f90": "fortran",
    "bash": "other", "shell": "other", "": "other",
}  # fmt: skip
_SETUP = frozenset({"module", "ml", "source", ".", "spack", "export"})
"""First words of commands that change the path of those after them."""
_OUTER = ("phase_artifacts", "plan")
_COMPILER = re.compile(r"[\w./+-]+")
# `${output}` is a variable of the shell.
_PLACEHOLDER = re.compile(r"(?<!\$)\{(compiler_selected|cflags|ldflags|output)\}")


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to write, by its path relative to the workspace."""

    path: str
    content: str
    mode: int = 0o644
    encoding: str = "utf-8"

    @property
    def data(self) -> bytes:
        """Bytes of the file."""
        return self.content.encode(self.encoding)


@dataclass(frozen=True, slots=True)
class WorkspacePlan:
    """Files and folders to write.

    Attributes:
        root: Name of the workspace in the plan; empty for none.
        tree: Folders to make, relative to the workspace.
        files: Files to write.
    """

    root: str = ""
    tree: tuple[str, ...] = ()
    files: tuple[PlannedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """Language, compiler and options of the compile phase.

    Attributes:
        language: ``c``, ``cpp``, ``fortran``, ``python`` or ``other``.
        compiler_selected: The compiler; empty for none.
        cflags: Its options.
        ldflags: Its options for linking.
        workdir: Folder the compile commands work in, relative to the workspace.
        output: The file that is built, relative to the workspace; empty when not given.
    """

    language: str = "other"
    compiler_selected: str = ""
    cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    workdir: str = "."
    output: str = ""

    def filled(self, command: CommandText) -> CommandText:
        """Return a command with its placeholders filled in. All other braces stay.

        In a text, values are quoted for the shell. A word that is nothing but ``{cflags}`` or
        ``{ldflags}`` becomes as many words as there are options.
        """
        if isinstance(command, str):
            return _PLACEHOLDER.sub(lambda match: shlex.join(self._words(match[1])), command)
        return tuple(
            filled
            for word in command
            for whole in [_PLACEHOLDER.fullmatch(word)]
            for filled in (
                self._words(whole[1])
                if whole
                else [_PLACEHOLDER.sub(lambda match: " ".join(self._words(match[1])), word)]
            )
        )

    def _words(self, name: str) -> tuple[str, ...]:
        value: str | tuple[str, ...] = getattr(self, name)
        if isinstance(value, tuple):
            return value
        return (value,) if value else ()


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """A plan that can be executed.

    Attributes:
        download: Commands that fetch and install.
        workspace: Files and folders to write.
        build: How it is compiled.
        compile: Commands that compile; none for Python.
        run: Commands that run it.
        expected_outputs: Files that are there afterwards, relative to the workspace.
        notes: Remarks of its author, by section.
    """

    download: tuple[CommandText, ...] = ()
    workspace: WorkspacePlan = WorkspacePlan()
    build: BuildPlan = BuildPlan()
    compile: tuple[CommandText, ...] = ()
    run: tuple[CommandText, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, the form of ``phase_artifacts``."""
        workspace = asdict(self.workspace)
        for file in workspace["files"]:
            file["mode"] = f"{file['mode']:04o}"
        sections: dict[str, dict[str, Any]] = {
            "download": {"commands": self.download},
            "coding": {"workspace": workspace},
            "compile": {"build_plan": asdict(self.build), "commands": self.compile},
            "run": {"commands": self.run, "expected_outputs": self.expected_outputs},
        }
        for name, text in self.notes.items():
            sections[name]["notes"] = text
        return sections

    @classmethod
    def from_dict(
        cls,
        data: object,
        compilers: Collection[str] | None = None,
        programs: Collection[str] = (),
        *,
        is_measured: bool = False,
    ) -> PhasePlan:
        """Read a plan, alone or as ``phase_artifacts`` or ``plan`` of an outer object.

        `compilers` has the names of those there are, and `programs` of all there is; None takes
        any. Without run commands there must be an evaluator, so that it `is_measured`.

        Raises:
            PhasePlanError: If it cannot be executed as it is written.
        """
        checks.refuse_mask("phase_artifacts", data)
        sections = _sections(data)
        compile_ = sections.get("compile", {})
        run = sections.get("run", {})
        download = sections.get("download", {})
        coding = sections.get("coding", {})
        compile_commands = checks.commands("compile.commands", compile_.get("commands"))
        downloads = checks.commands("download.commands", download.get("commands"))
        first = _first_word(compile_commands)
        if downloads or first in _SETUP:  # they may bring a compiler
            compilers = None
        build_plan = checks.section("compile.build_plan", compile_.get("build_plan"))
        build = _build(build_plan, compilers, programs, first)
        if build.language in COMPILED and not compile_commands:
            raise PhasePlanError("compile.commands", f"is empty, though it is {build.language}")
        run_commands = checks.commands("run.commands", run.get("commands"))
        if not run_commands and not is_measured:
            raise PhasePlanError("run.commands", "is empty, so nothing would be measured")
        notes = {name: checks.note(sections[name].get("notes")) for name in sections}
        return cls(
            download=downloads,
            workspace=_workspace(coding),
            build=build,
            compile=() if build.language == "python" else compile_commands,
            run=run_commands,
            expected_outputs=_outputs(run.get("expected_outputs")),
            notes={name: text for name, text in notes.items() if text},
        )


def _outputs(value: object) -> tuple[str, ...]:
    place = "run.expected_outputs"
    given = checks.items(place, [value] if isinstance(value, str) else value)
    paths = [checks.path_below_root(f"{place}[{n}]", path) for n, path in enumerate(given)]
    if "." in paths:
        raise PhasePlanError(f"{place}[{paths.index('.')}]", "names no file")
    return tuple(paths)


def _sections(data: object) -> dict[str, Mapping[str, Any]]:
    """Return the sections, out of whatever they are wrapped in."""
    for _ in range(len(_OUTER) + 2):
        if isinstance(data, list | tuple) and len(data) == 1:
            data = data[0]
        if not isinstance(data, Mapping):
            break
        found = {name: data[name] for name in PHASES if name in data}
        if found:
            return {name: _section(name, value) for name, value in found.items()}
        data = next((data[name] for name in _OUTER if name in data), None)
    raise PhasePlanError("phase_artifacts", f"has none of the sections {', '.join(PHASES)}")


def _section(name: str, value: object) -> Mapping[str, Any]:
    """Return a section that may be given as its commands, or its files, alone."""
    if name == "coding":
        return {"files": value} if isinstance(value, list) else checks.section(name, value)
    return {"commands": value} if isinstance(value, str | list) else checks.section(name, value)


def _first_word(commands: Sequence[CommandText]) -> str:
    """Return the program of the first command, empty for none."""
    first = commands[0] if commands else ""
    words = first.split() if isinstance(first, str) else first
    return words[0] if words else ""


def _build(
    data: Mapping[str, Any],
    compilers: Collection[str] | None,
    programs: Collection[str],
    first: str,
) -> BuildPlan:
    """Return a build plan. Where it names no compiler, that is the `first` program if it is one."""
    place = "compile.build_plan"
    given = checks.text(f"{place}.language", data.get("language")).strip().lower()
    language = _ALIASES.get(given, given)
    if language not in _LANGUAGES:
        wanted = ", ".join(sorted(_LANGUAGES))
        raise PhasePlanError(f"{place}.language", f"must be one of {wanted}, not {given!r:.40}")
    compiler = checks.text(f"{place}.compiler_selected", data.get("compiler_selected")).strip()
    compiler = compiler or (first if first in (compilers or ()) else "")
    if language in COMPILED and compiler not in programs:
        _check_compiler(f"{place}.compiler_selected", compiler, compilers)
    output = data.get("output")
    return BuildPlan(
        language=language,
        compiler_selected=compiler if language != "python" else "",
        cflags=checks.words(f"{place}.cflags", data.get("cflags")),
        ldflags=checks.words(f"{place}.ldflags", data.get("ldflags")),
        workdir=checks.path_below_root(f"{place}.workdir", data.get("workdir")),
        output=checks.path_below_root(f"{place}.output", output) if output else "",
    )


def _check_compiler(place: str, compiler: str, compilers: Collection[str] | None) -> None:
    if not _COMPILER.fullmatch(compiler):
        raise PhasePlanError(place, f"must be the name of a compiler, not {compiler!r:.40}")
    if compilers is not None and compiler not in compilers:
        there = ", ".join(sorted(compilers)) or "none"
        raise PhasePlanError(place, f"{compiler} is not on the path here; there is: {there}")


def _workspace(coding: Mapping[str, Any]) -> WorkspacePlan:
    place = "coding.workspace"
    data = checks.section(place, coding.get("workspace"))
    if not data and coding.get("files"):
        data = coding
    files = _files(f"{place}.files", data.get("files"))
    taken = {file.path for file in files}
    tree = [
        checks.inner_path(f"{place}.tree[{n}]", entry)
        for n, entry in enumerate(checks.items(f"{place}.tree", data.get("tree")))
    ]
    if len(tree) > MAX_FILES:
        raise PhasePlanError(f"{place}.tree", f"has {len(tree)} entries, more than {MAX_FILES}")
    for path in (*tree, *taken):
        below = next((str(up) for up in PurePosixPath(path).parents if str(up) in taken), None)
        if below is not None:
            raise PhasePlanError(f"{place}.files", f"{path} is below {below}, which is a file")
    # A tree often lists the files too.
    folders = [path for path in dict.fromkeys(tree) if path not in taken and path != "."]
    root = checks.text(f"{place}.root", data.get("root"))
    return WorkspacePlan(root, tuple(folders), files)


def _files(place: str, value: object) -> tuple[PlannedFile, ...]:
    if isinstance(value, Mapping):
        value = [{"path": path, "content": content} for path, content in value.items()]
    given = checks.items(place, value)
    if len(given) > MAX_FILES:
        raise PhasePlanError(place, f"holds {len(given)} files, more than {MAX_FILES}")
    files: dict[str, PlannedFile] = {}
    left = MAX_ALL_BYTES
    for n, entry in enumerate(given):
        file = _file(f"{place}[{n}]", entry)
        if file.path in files:
            raise PhasePlanError(f"{place}[{n}].path", f"{file.path} is there twice")
        left -= len(file.data)
        if left < 0:
            raise PhasePlanError(place, f"hold more than {MAX_ALL_BYTES >> 20} MiB together")
        files[file.path] = file
    return tuple(files.values())


def _file(place: str, entry: object) -> PlannedFile:
    data = checks.section(place, entry)
    path = checks.file_path(f"{place}.path", data.get("path"))
    if PurePosixPath(path).parts[0] == WORKING:
        raise PhasePlanError(f"{place}.path", f"{WORKING} is emptied before the run, {path} too")
    content = data.get("content")
    if not isinstance(content, str):
        raise PhasePlanError(
            f"{place}.content", f"must be text, not {type(content).__name__} {content!r:.40}"
        )
    encoding = checks.encoding(f"{place}.encoding", data.get("encoding"))
    file = PlannedFile(path, content, checks.mode(f"{place}.mode", data.get("mode")), encoding)
    try:
        size = len(file.data) if len(content) <= MAX_FILE_BYTES else len(content)
    except UnicodeError:
        problem = f"cannot be written as {file.encoding}"
        raise PhasePlanError(f"{place}.content", problem) from None
    if size > MAX_FILE_BYTES:
        raise PhasePlanError(f"{place}.content", f"is over {MAX_FILE_BYTES >> 20} MiB")
    return file
