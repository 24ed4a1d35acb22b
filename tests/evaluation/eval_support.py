"""Parts of the tests of evaluations: files of cases, and replies as people write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from taskweaver.utils.files import write_yaml

TABLE = {"t.csv": "a,b\n1,x\n2,y\n4,z\n"}


def say(text: str) -> dict[str, Any]:
    return {"response": {"send_to": "User", "message": text}}


def cell(code: str) -> dict[str, Any]:
    return {"response": {"send_to": "CodeInterpreter", "message": "run it", "code": code}}


def as_text(reply: dict[str, Any]) -> str:
    return json.dumps(reply)


def talk(name: str, answer: str = "It is 7.", **more: Any) -> dict[str, Any]:
    """Return a case of one question, which needs no kernel."""
    step = {"ask": f"What is {name}?", "replies": [say(answer)], "checks": [{"number": 7}]}
    return {"name": name, "steps": [step]} | more


def write_cases(folder: Path, *cases: dict[str, Any]) -> Path:
    write_yaml(folder / "cases.yaml", {"kind": "mine", "cases": list(cases)})
    return folder / "cases.yaml"
