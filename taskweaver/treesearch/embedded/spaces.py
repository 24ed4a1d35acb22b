"""The ideas that a built-in model knows: parameters, first attempts, writers of attempts, needs.

`STENCIL` is a three-dimensional stencil in C, made fast by loop order, blocks, compiler flags and
threads. `TABULAR` is learning on data of scikit-learn, measured by its cross-validated accuracy.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any, Protocol

from packaging.requirements import InvalidRequirement, Requirement

from taskweaver.treesearch.errors import SearchError
from taskweaver.utils.system.requirements import absent, command

_LINE = re.compile(r"^[\s>*_-]*packages[*_]*\s*:\s*(?P<text>\S.*)$", re.I | re.M)
_MARKUP = "`*_. "
Values = Mapping[str, Any]
_SOURCE = Path(__file__).with_name("stencil.c")
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of an idea; false when there are none.

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


class PlanWriter(Protocol):
    """A writer of the ``phase_artifacts`` of values.

    They measure themselves, unless the run has an evaluator, which expects them in its form.
    """

    def __call__(self, values: Values, /, *, has_evaluator: bool) -> dict[str, Any]:
        """Return the artifacts."""


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
        write: Writes the phase plan of values.
        script: Writes one script of values; None where a script cannot do it.
        repair: Returns values that avoid an error, from the values and the error's text.
        needs: Packages and programs of its attempts.
    """

    name: str
    parameters: Sequence[Parameter]
    drafts: Sequence[Values]
    write: PlanWriter
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
