"""Plans that tests of the phases share."""

from __future__ import annotations

from typing import Any

from taskweaver.ces.command_process import CommandLimits
from taskweaver.treesearch.model.limits import PhaseLimits

LIMITS = PhaseLimits(30, 30, 30, CommandLimits(process_limit=64))


def artifacts(**sections: Any) -> dict[str, Any]:
    """Return a small plan in Python; `sections` replace its own."""
    usual = {
        "download": {"commands": []},
        "coding": {
            "workspace": {
                "root": "/workspace",
                "tree": ["workspace/", "workspace/src/"],
                "files": [{"path": "src/main.py", "mode": "0644", "content": "print('hi')\n"}],
            }
        },
        "compile": {"build_plan": {"language": "python"}, "commands": []},
        "run": {"commands": ["python src/main.py"], "expected_outputs": []},
    }
    return usual | sections


def with_file(**fields: Any) -> dict[str, Any]:
    """Return a plan of one file; a field that is ``...`` is left out."""
    file = {"path": "f", "content": "x"} | fields
    file = {key: value for key, value in file.items() if value is not ...}
    return artifacts(coding={"workspace": {"files": [file]}})


def with_code(code: str, **sections: Any) -> dict[str, Any]:
    """Return a plan that runs Python code."""
    files = [{"path": "main.py", "content": code}]
    run = {"commands": ["python main.py"]}
    return artifacts(**({"coding": {"workspace": {"files": files}}, "run": run} | sections))


def in_c(code: str, **build: Any) -> dict[str, Any]:
    """Return a plan that compiles C."""
    plan = {
        "language": "c", "compiler_selected": "gcc", "cflags": ["-O1"], "output": "bin/a.out",
    } | build  # fmt: skip
    return artifacts(
        coding={"workspace": {"tree": ["bin"], "files": [{"path": "main.c", "content": code}]}},
        compile={
            "build_plan": plan,
            "commands": ["{compiler_selected} {cflags} main.c -o {output} {ldflags}"],
        },
        run={"commands": [["./bin/a.out"]]},
    )
