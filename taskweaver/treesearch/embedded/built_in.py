"""Models by rules for the ideas that they know: the spaces of two ideas, and a proposer.

`STENCIL` is a three-dimensional stencil in C, made fast by loop order, blocks, compiler flags and
threads. `TABULAR` is learning on data of scikit-learn, measured by its cross-validated accuracy.

The proposer reads the prompt alone, and changes one thing at a time. A change that helped is
continued, in the same direction where it is a number. A change that ancestors (memory) or others
(the digest) tried is not tried again.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from taskweaver.llm.types import ChatMessage
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.idea import Idea
from taskweaver.utils.system.installation import absent, command

_LINE = re.compile(r"^[\s>*_-]*packages[*_]*\s*:\s*(?P<text>\S.*)$", re.I | re.M)
_MARKUP = "`*_. "
Values = Mapping[str, Any]
_SOURCE = Path(__file__).with_name("stencil.c")
_HERE = Path(__file__).parent
_FENCE = re.compile(r"(`{3,})(.*)")
_VALUES = re.compile(r"VALUES = (\{.*\})")
_OTHER = re.compile(
    r"^- n\d+ (?P<kind>\w+)(?: (?P<change>\S+=\S+))?(?: of (?P<parent>n\d+))?: \S", re.MULTILINE
)
"""Another attempt, as the digest lists it; without a change or a parent these are None."""
Other = re.Match[str]
_CORE = re.compile(r"^- (?P<key>[\w.]+)(?: \[\d\])?: (?P<value>.*)$", re.MULTILINE)
_TRIED, _LAST = "tried_changes", "last_change"
_TAKEN = re.compile(r"make another change than (.+)\.$", re.MULTILINE)
Model = Callable[[Sequence[ChatMessage]], str]
_NAMED = re.compile(r"built-in proposer\W+(?:is\s+)?`(?P<name>[a-z_]+)`", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of an idea, false when there are none.

    Attributes:
        packages: Requirements as pip takes them, like ``scikit-learn>=1.5``.
        programs: Names of programs, like ``gcc``.
    """

    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.packages or self.programs)

    def check(self) -> None:
        """Check that all of them are installed on this machine.

        Raises:
            SearchError: If one is missing; its hint is the command that installs the packages.
        """
        packages = absent(self.packages)
        programs = [name for name in self.programs if shutil.which(name) is None]
        missing = ", ".join([*packages, *programs])
        if not missing:
            return
        steps = [command(packages)] if packages else []
        steps += [f"install {', '.join(programs)} with the system's packages"] if programs else []
        raise SearchError(
            f"The idea needs {missing}, not installed on {gethostname()}. No attempt was made.",
            f"Install: {'; '.join(steps)}",
        )


def named_packages(text: str) -> tuple[str, ...]:
    """Return the requirements of the lines ``Packages: scikit-learn, pandas>=2`` of an idea.

    Parts that are no requirement in pip's syntax are left out.
    """
    parts = (part for line in _LINE.finditer(text) for part in line["text"].split(","))
    found = []
    for part in parts:
        with suppress(InvalidRequirement):
            found.append(str(Requirement(part.strip(_MARKUP))))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that can be chosen.

    Attributes:
        name: Its name.
        values: Its values; of numbers in order, the plainest first.
        is_tuned: Whether it is a number to tune, rather than a part of the method.
        applies: Whether it means anything with the other values.
    """

    name: str
    values: tuple[Any, ...]
    is_tuned: bool = False
    applies: Callable[[Values], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Space:
    """Space of the attempts at an idea.

    Attributes:
        name: Its name in ideas.
        parameters: Its parameters, the most promising first.
        drafts: First attempts.
        write: Writes the ``phase_artifacts`` of values, which measure themselves unless the run
            `has_evaluator`, which expects them in its form.
        script: Writes one script of values; None where a script cannot do it.
        repair: Returns values that avoid an error, from the values and the error's text.
        needs: Packages and programs of its attempts.
    """

    name: str
    parameters: Sequence[Parameter]
    drafts: Sequence[Values]
    write: Callable[..., dict[str, Any]]
    script: Callable[[Values], str] | None
    repair: Callable[[Values, str], Values]
    needs: Needs


def _flags(values: Values) -> list[str]:
    flags = [f"-{values['optimize']}"]
    flags += ["-march=native"] if values["native"] == "yes" else []
    flags += ["-ffast-math"] if values["fast_math"] == "yes" else []
    flags += ["-fopenmp"] if values["openmp"] == "yes" else []
    flags += [f"-DK_INNER={1 if values['inner'] == 'k' else 0}", f"-DTHREADS={values['threads']}"]
    return [*flags, f"-DBLOCK_I={values['block_i']}", f"-DBLOCK_J={values['block_j']}"]


def _write_stencil(values: Values, *, has_evaluator: bool) -> dict[str, Any]:
    source = _SOURCE.read_text().replace("@VALUES@", json.dumps(dict(values)))
    target = "bin/stencil.o" if has_evaluator else "bin/stencil"
    as_object = ["-c", "-DHAS_EVALUATOR"] if has_evaluator else []
    build = {
        "language": "c",
        "compiler_selected": "gcc",
        "cflags": [*_flags(values), *as_object],
        "ldflags": ["-lm"],
        "workdir": "/workspace",
        "output": target,
    }
    compile_ = "{compiler_selected} {cflags} src/stencil.c -o {output} {ldflags}"
    run = f"OMP_NUM_THREADS={values['threads']} ./{target}"
    file = {"path": "src/stencil.c", "content": source}
    return {
        "download": {"commands": [], "notes": ""},
        "coding": {"workspace": {"root": "/workspace", "tree": ["src/", "bin/"], "files": [file]}},
        "compile": {"build_plan": build, "commands": ["mkdir -p bin", compile_]},
        "run": {
            "commands": [f"test -s {target}" if has_evaluator else run],
            "expected_outputs": [] if has_evaluator else ["working/result.json"],
        },
    }


def _repair_stencil(values: Values, error: str) -> Values:
    if "omp_" in error or "GOMP" in error or "openmp" in error.lower():
        return {**values, "openmp": "yes"}
    return {**values, "fast_math": "no", "openmp": "no", "threads": 1}


_PLAIN_STENCIL = {
    "optimize": "O0", "native": "no", "fast_math": "no", "openmp": "no", "threads": 1,
    "inner": "i", "block_i": 62, "block_j": 62,
}  # fmt: skip

STENCIL = Space(
    name="stencil",
    parameters=(
        Parameter("inner", ("i", "k")),
        Parameter("optimize", ("O0", "O1", "O2", "O3")),
        Parameter("native", ("no", "yes")),
        Parameter("fast_math", ("no", "yes")),
        Parameter("block_j", (62, 31, 16, 8), True),
        Parameter("block_i", (62, 31, 16, 8), True),
        Parameter("threads", (1, 2), True, lambda v: v["openmp"] == "yes"),
        Parameter("openmp", ("no", "yes")),
    ),
    drafts=(
        _PLAIN_STENCIL,
        {**_PLAIN_STENCIL, "threads": 2, "block_i": 16},
        {**_PLAIN_STENCIL, "optimize": "O1"},
    ),
    write=_write_stencil,
    script=None,
    repair=_repair_stencil,
    needs=Needs(programs=("gcc",)),
)


def _code(values: Values, *, has_evaluator: bool) -> str:
    """Return the program: it predicts the folds of `evaluate_tabular.py`, or measures itself."""
    ending = "tabular_predict.txt" if has_evaluator else "tabular_own_measure.txt"
    model = (_HERE / "tabular_program.txt").read_text()
    filled = model.replace("@VALUES@", json.dumps(dict(values)))
    return filled.replace("@MEASURE@", (_HERE / ending).read_text().strip())


def _write_tabular(values: Values, *, has_evaluator: bool) -> dict[str, Any]:
    code = _code(values, has_evaluator=has_evaluator)
    check = "python -m py_compile experiment.py"
    build = {"language": "python", "compiler_selected": "", "workdir": "/workspace"}
    file = {"path": "experiment.py", "content": code}
    return {
        "download": {"commands": [], "notes": "scikit-learn is installed"},
        "coding": {"workspace": {"root": "/workspace", "tree": [], "files": [file]}},
        "compile": {"build_plan": build, "commands": []},
        "run": {
            "commands": [check if has_evaluator else "python experiment.py"],
            "expected_outputs": [] if has_evaluator else ["working/result.json"],
        },
    }


def _repair_tabular(values: Values, error: str) -> Values:
    if "iter" in error or "converge" in error:
        return {**values, "iterations": 1000}
    return {**values, "model": "tree", "components": 0}


_PLAIN_TABULAR = {
    "model": "tree", "depth": 1, "scale": "no", "strength": 1.0, "iterations": 50, "trees": 5,
    "components": 0,
}  # fmt: skip

TABULAR = Space(
    name="tabular",
    parameters=(
        Parameter("scale", ("no", "yes")),
        Parameter("model", ("tree", "forest", "logistic", "svm")),
        Parameter("components", (0, 5, 10)),
        Parameter("depth", (1, 2, 3, 5), True, lambda v: v["model"] == "tree"),
        Parameter("trees", (5, 20, 60), True, lambda v: v["model"] == "forest"),
        Parameter(
            "strength", (0.01, 0.1, 0.3, 1.0, 3.0, 10.0), True,
            lambda v: v["model"] in {"logistic", "svm"},
        ),
        Parameter("iterations", (50, 200, 1000), True, lambda v: v["model"] == "logistic"),
    ),
    drafts=(
        _PLAIN_TABULAR,
        {**_PLAIN_TABULAR, "model": "logistic", "iterations": 200},
        {**_PLAIN_TABULAR, "depth": 3},
    ),
    write=_write_tabular,
    script=partial(_code, has_evaluator=False),
    repair=_repair_tabular,
    needs=Needs(packages=("scikit-learn",)),
)  # fmt: skip


def sections(prompt: str) -> dict[str, str]:
    """Return the text below each heading of the first level. Fenced text has no headings."""
    found: dict[str, list[str]] = {}
    heading, fence = "", ""
    for line in prompt.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        elif not fence and line.startswith("# "):
            heading = line[2:].strip()
            found[heading] = []
            continue
        found.setdefault(heading, []).append(line)
    return {title: "\n".join(lines).strip() for title, lines in found.items()}


def values_in(code: str) -> dict[str, Any]:
    """Return the values an attempt was written with."""
    found = _VALUES.search(code)
    return dict(json.loads(found[1])) if found else {}


def number(text: str) -> float | None:
    """Return the number a text begins with, None when it begins with none."""
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None


def remembered(memory: str, key: str) -> Any:
    """Return a core key of a rendered memory, as data, None when it is not there."""
    for match in _CORE.finditer(memory):
        if match["key"] == key:
            try:
                return json.loads(match["value"])
            except ValueError:
                return None
    return None


def _tried_before(prompt: Mapping[str, str]) -> list[str]:
    """Return the changes that ancestors tried, as the memory has them."""
    tried = remembered(prompt.get("Memory", ""), _TRIED)
    return tried if isinstance(tried, list) else []


class RuleProposer:
    """A model of one idea. It keeps nothing between calls."""

    def __init__(self, space: Space) -> None:
        self._space = space

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Answer a prompt in the protocol it asks for."""
        prompt = sections(str(messages[-1]["content"]))
        if "Kind of attempt" not in prompt:
            return _with_memory(prompt, {}, json.dumps(_plan(prompt)))
        kind, _, wanted = prompt["Kind of attempt"].partition(" ")
        return self._attempt(prompt, kind, wanted)

    def _attempt(self, prompt: Mapping[str, str], kind: str, wanted: str) -> str:
        known = list(_OTHER.finditer(prompt.get("Other attempts", "")))
        memory = prompt.get("Memory", "")
        parent = values_in(prompt.get("Code", ""))
        if kind == "draft" or not parent:
            count = sum(other["kind"] == "draft" for other in known)
            count += "exactly this program" in prompt.get("Parsing Feedback", "")
            drafts = self._space.drafts
            values, change = dict(drafts[count % len(drafts)]), ""
            why = "A plain first attempt."
        elif kind == "debug":
            error = f"{prompt.get('Error', '')}\n{prompt.get('Execution output', '')}"
            values, change = dict(self._space.repair(parent, error)), ""
            why = f"Repaired: {prompt.get('Error', 'it failed').splitlines()[0][:120]}"
        else:
            helped = self._hint(prompt, memory)
            if kind == "ablation":  # what was added by its ancestors is there to be taken away
                helped, memory, known = "", "", [o for o in known if o["kind"] == kind]
            tried = self._tried({**prompt, "Memory": memory}, known)
            moves = [
                (parameter, value)
                for parameter, value in self._moves(kind, parent, helped)
                if f"{parameter.name}={value}" not in tried
            ]
            values, change, why = _chosen(parent, moves, helped)
        return self._reply(prompt, values, change or wanted, why)

    def _tried(self, prompt: Mapping[str, str], known: Sequence[Other]) -> set[str]:
        """Return the changes not to try: those of ancestors, of the same node, or running now."""
        parent = prompt.get("Made from")
        refused = _TAKEN.search(prompt.get("Parsing Feedback", ""))
        return {
            *_tried_before(prompt),
            *(other["change"] for other in known if other["parent"] == parent),
            *(refused[1].split(", ") if refused else ()),
        }

    def _hint(self, prompt: Mapping[str, str], memory: str) -> str:
        """Return the parameter whose last change helped, to change it further."""
        last = remembered(memory, _LAST)
        now = number(prompt.get("Result", ""))
        if not isinstance(last, dict) or now is None or last.get("before") is None:
            return ""
        is_up = "lower is better" not in prompt.get("Evaluation metric", "")
        gain = now - float(last["before"])
        return str(last.get("name", "")) if (gain > 0) is is_up and gain else ""

    def _moves(
        self, kind: str, parent: Mapping[str, Any], helped: str
    ) -> Iterator[tuple[Parameter, Any]]:
        fitting = [p for p in self._space.parameters if p.applies(parent)]
        if kind == "ablation":
            for parameter in fitting:
                if parent.get(parameter.name) != parameter.values[0]:
                    yield parameter, parameter.values[0]
            return
        if kind == "hyperparam":
            fitting = sorted(fitting, key=lambda p: not p.is_tuned)
        fitting = sorted(fitting, key=lambda p: p.name != helped)
        back = []
        for parameter in fitting:
            values = parameter.values
            now = parent.get(parameter.name)
            place = values.index(now) if now in values else 0
            for value in values[place + 1 :]:
                yield parameter, value
            back += [(parameter, value) for value in reversed(values[:place])]
        yield from back

    def _reply(
        self, prompt: Mapping[str, str], values: Mapping[str, Any], change: str, why: str
    ) -> str:
        tried = [*_tried_before(prompt), *([change] if change else [])]
        name = change.partition("=")[0]
        before = number(prompt.get("Result", ""))
        updates = {
            "core": {
                _TRIED: json.dumps(tried),
                _LAST: json.dumps({"name": name, "before": before}),
                "best_params": json.dumps(dict(values)),
            },
            "archival": [{"text": f"{change or 'first attempt'}: {why}", "tags": ["CHANGE"]}],
        }
        said = f"{why} Values: {json.dumps(dict(values))}"
        form = prompt.get("Instructions", "")
        if "/workspace" in form or self._space.script is None:
            plan = self._space.write(values, has_evaluator="Evaluator" in prompt)
            answer = {"plan": said, "name": change, "phase_artifacts": plan}
        else:
            answer = {"plan": said, "name": change, "code": self._space.script(values)}
        return _with_memory(prompt, updates, json.dumps(answer))


def _chosen(
    parent: Mapping[str, Any], moves: Sequence[tuple[Parameter, Any]], helped: str
) -> tuple[dict[str, Any], str, str]:
    """Make the first change: one that helped is continued before others are tried."""
    if not moves:
        return dict(parent), "", "Everything was tried; the same again."
    parameter, value = moves[0]
    why = f"{parameter.name} was {parent.get(parameter.name)}; try {value}."
    if parameter.name == helped:
        why = f"The last change of it helped. {why}"
    return {**parent, parameter.name: value}, f"{parameter.name}={value}", why


def _with_memory(prompt: Mapping[str, str], updates: Mapping[str, Any], answer: str) -> str:
    if "Memory" not in prompt:
        return answer
    return f"<memory_update>\n{json.dumps(dict(updates))}\n</memory_update>\n{answer}"


def _plan(prompt: Mapping[str, str]) -> dict[str, Any]:
    """Return a plan for Phase 0, of the content of its prompt, in its form."""
    first = prompt.get("Environment", "").splitlines()
    return {
        "plan": {
            "goal_summary": "One change, measured as the idea says.",
            "implementation_strategy": ["write the program", "run it", "check it, and measure"],
            "phase_guidance": {"phase4": {"output_policy": "working/result.json"}},
        },
        "internal": {"environment_analysis": " ".join(first[:6])[:600]},
    }


_SPACES = {space.name: space for space in (TABULAR, STENCIL)}


def model_for(idea: Idea) -> Model | None:
    """Return the model that an idea names, as in ``Built-in proposer: `stencil```, or None."""
    space = _space_of(idea)
    return RuleProposer(space) if space is not None else None


def needs_of(idea: Idea, *, is_embedded: bool) -> Needs:
    """Return the needs that an idea names and, where its built-in proposer works, those of that."""
    space = _space_of(idea) if is_embedded else None
    named = named_packages(idea.text)
    return Needs((*space.needs.packages, *named), space.needs.programs) if space else Needs(named)


def _space_of(idea: Idea) -> Space | None:
    found = _NAMED.search(idea.text)
    return _SPACES.get(found["name"]) if found else None
