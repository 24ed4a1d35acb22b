"""A three-dimensional stencil in C, made fast: loop order, blocks, compiler flags, threads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from taskweaver.treesearch.embedded.needs import Needs
from taskweaver.treesearch.embedded.space import Parameter, Space, Values

_SOURCE = Path(__file__).with_name("stencil.c")


def _flags(values: Values) -> list[str]:
    flags = [f"-{values['optimize']}"]
    flags += ["-march=native"] if values["native"] == "yes" else []
    flags += ["-ffast-math"] if values["fast_math"] == "yes" else []
    flags += ["-fopenmp"] if values["openmp"] == "yes" else []
    flags += [f"-DK_INNER={1 if values['inner'] == 'k' else 0}", f"-DTHREADS={values['threads']}"]
    return [*flags, f"-DBLOCK_I={values['block_i']}", f"-DBLOCK_J={values['block_j']}"]


def _write(values: Values, *, has_evaluator: bool) -> dict[str, Any]:
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


def _repair(values: Values, error: str) -> Values:
    if "omp_" in error or "GOMP" in error or "openmp" in error.lower():
        return {**values, "openmp": "yes"}
    return {**values, "fast_math": "no", "openmp": "no", "threads": 1}


_PLAIN = {
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
    drafts=(_PLAIN, {**_PLAIN, "threads": 2, "block_i": 16}, {**_PLAIN, "optimize": "O1"}),
    write=_write,
    script=None,
    repair=_repair,
    needs=Needs(programs=("gcc",)),
)
