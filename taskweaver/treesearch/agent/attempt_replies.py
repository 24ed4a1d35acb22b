"""Reader of an attempt: files, edits and commands in fences, or the JSON of the original."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.llm.parsing.json_text import required_object
from taskweaver.treesearch.agent.edits import edited, edits_in
from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.model.artifacts import SCRIPT, Artifacts, ScriptArtifact
from taskweaver.treesearch.model.phase_plan import PHASES, PhasePlan
from taskweaver.treesearch.model.plan_checks import refuse_mask

COMMANDS = "commands"
"""The word after the opening of the fence with the commands."""
_NAME_CHARS = 120
_FENCE = re.compile(
    r"^ {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)\n(?P<body>.*?)^ {0,3}(?P=mark)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_OPENED_INSIDE = re.compile(
    rf"^ {{0,3}}```(?:(?:file|edit)[ \t]+\S+|{COMMANDS})[ \t]*$", re.MULTILINE
)
_VERB = re.compile(r"\A(?:file|edit|path|filename|title)(?:\s*[:=]\s*|\s+)", re.IGNORECASE)
_PATH = re.compile(r"(?:/workspace/)?[\w.+-]+(?:/[\w.+-]+)*\.?\w*")
_HEADING = re.compile(
    r"(?:^|\n)[#>*\s`-]*(?:file|edit)?[:\s]*(?P<path>[\w./+-]+\.\w+|Makefile)[`*:\s]*\n\s*\Z",
    re.IGNORECASE,
)
_JSON = {COMMANDS, "json", "phase_artifacts"}
_PLAN_LABEL = re.compile(
    r"^(?:#+[ \t]*plan(?::|[* \t]*$)|\*\*plan:?\*\*|plan(?::|[ \t]*$))[*:\s]*",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed attempt, with the name of the parameter or part it changes; empty for none."""

    plan: str
    name: str
    artifacts: PhasePlan | ScriptArtifact


@dataclass(frozen=True, slots=True)
class Basis:
    """Starting point of an attempt.

    Attributes:
        files: Text of the parent's files, by path.
        artifacts: The parent's artifacts; None for a first attempt.
        compilers: Compilers of the machine that runs it.
        programs: All programs of that machine.
        is_measured: Whether an evaluator measures it, so that it need not run anything itself.
    """

    files: Mapping[str, str]
    artifacts: Artifacts | None
    compilers: tuple[str, ...]
    programs: frozenset[str] = frozenset()
    is_measured: bool = False

    def plan(self, given: object) -> PhasePlan:
        """Return the plan in plain data.

        Raises:
            PhasePlanError: If it cannot be carried out.
        """
        return PhasePlan.from_dict(
            given, self.compilers, self.programs, is_measured=self.is_measured
        )


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a reply in fences: a path and a text each, and the rest as an object."""

    plan: str
    files: tuple[tuple[str, str], ...]
    data: Mapping[str, Any]


def read_script(text: str, basis: Basis) -> Proposal:
    """Read the reply to a question for one script.

    Raises:
        PhasePlanError: If it cannot be carried out.
        ValueError: If it is of no form that is read.
    """
    parts = _parts(text, {"python", "py"}, SCRIPT)
    if parts is None:
        data = required_object(text, {})
        code = data.get("code")
        code = code if isinstance(code, str) else ""
    else:
        data = {"plan": parts.plan, **parts.data}
        code = _files(parts, basis).get(SCRIPT, "")
    if not code.strip():
        raise PhasePlanError("code", "there is none; give the program in a fence ```python")
    refuse_mask("code", code)
    return _proposal(data, ScriptArtifact(code))


def read_phases(text: str, basis: Basis) -> Proposal:
    """Read the reply to a question for an attempt in phases; parts left out are the parent's.

    Raises:
        PhasePlanError: If it cannot be carried out.
        ValueError: If it is of no form that is read.
    """
    parts = _parts(text, set(), "")
    if parts is None:
        data = required_object(text, {})
        given = data.get("phase_artifacts", data)
        return _proposal(data, basis.plan(given))
    own = parts.data.get("phase_artifacts", parts.data)
    given = {name: own[name] for name in PHASES if name in own}
    before = basis.artifacts.to_dict() if isinstance(basis.artifacts, PhasePlan) else {}
    given = {name: before[name] for name in ("compile", "run") if name in before} | given
    if "run" not in given and not basis.is_measured:
        raise PhasePlanError(
            "run.commands",
            "no commands were found; give them in a fence ```commands, as in the example",
        )
    if parts.files:
        files = [{"path": path, "content": body} for path, body in _files(parts, basis).items()]
        given["coding"] = {"workspace": {"files": files}}
    return _proposal({"plan": parts.plan, **parts.data}, basis.plan(given))


def _proposal(data: Mapping[str, Any], artifacts: PhasePlan | ScriptArtifact) -> Proposal:
    plan, name = data.get("plan"), data.get("name")
    return Proposal(
        plan if isinstance(plan, str) else "",
        name[:_NAME_CHARS] if isinstance(name, str) else "",
        artifacts,
    )


def _files(parts: _Parts, basis: Basis) -> dict[str, str]:
    """Return the whole text of each file of a reply; edits are made in the parent's files."""
    found: dict[str, str] = {}
    for path, body in parts.files:
        edits = edits_in(body)
        before = found.get(path, basis.files.get(path))
        if not edits:
            found[path] = body
        elif before is None and any(edit.search.strip() for edit in edits):
            there = ", ".join(basis.files) or "none"
            raise PhasePlanError(path, f"there is no such file to edit; the files are: {there}")
        else:
            found[path] = edited(path, before or "", edits)
    return found


def _parts(text: str, code_words: Collection[str], code_path: str) -> _Parts | None:
    """Return the parts of a reply in fences; None where no fence names a file or commands.

    A fence of one of `code_words` without a path is the file `code_path`.
    """
    files: list[tuple[str, str]] = []
    data: dict[str, Any] = {}
    first, has_commands = len(text), False
    for match, before in _fences(text):
        info, body = match["info"].strip(), match["body"]
        word = info.split()[0].lower() if info else ""
        path = _path_of(info, before)
        has_commands |= info.lower() == COMMANDS
        if word in _JSON and (word == COMMANDS or not path):
            data |= required_object(body, {})
        elif path:
            inside = _OPENED_INSIDE.search(body)
            if inside and match["mark"] == "```":
                line = inside[0].strip()
                problem = f"its fence is open where {line} begins; close it, or use four backquotes"
                raise PhasePlanError(path, problem)
            files.append((path, body))
        elif word in code_words:
            files.append((code_path, body))
        else:
            continue
        first = min(first, match.start())
    if not files and not (data and "phase_artifacts" not in data and has_commands):
        return None
    plan = _HEADING.sub("\n", text[:first]).strip()
    label = _PLAN_LABEL.search(plan)
    return _Parts(plan[label.end() :] if label else plan, tuple(files), data)


def _fences(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each fence with the text between it and the one before."""
    end = 0
    for match in _FENCE.finditer(text):
        yield match, text[end : match.start()]
        end = match.end()


def _path_of(info: str, before: str) -> str:
    """Return the path that the opening of a fence names, or else the line above; empty for none."""
    verb = _VERB.match(info)
    rest = info[verb.end() :] if verb else info.partition(" ")[2] or info.partition(":")[2]
    named = _PATH.fullmatch(_VERB.sub("", rest.strip(), count=1).strip("`\"' "))
    if named is None or not (verb or "." in named[0] or "/" in named[0]):
        heading = _HEADING.search(before)
        return _plain(heading["path"]) if heading else ""
    return _plain(named[0])


def _plain(path: str) -> str:
    return path.removeprefix("/workspace/").removeprefix("./")
