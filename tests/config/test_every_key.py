"""Every configuration key is named in tests, and documents name only keys that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from taskweaver.config.config_mgt import env_name
from taskweaver.config.keys.known_keys import BY_NAME, find
from taskweaver.config.keys.roles import EXT_ROLES, INTERPRETERS
from taskweaver.config.replaced import provider_key, removed

TEST_FOLDER = Path(__file__).parents[1]
DOCS = sorted({*(TEST_FOLDER.parent / "docs").glob("*.md")} - {TEST_FOLDER.parent / "docs/map.md"})
"""The documents; `map.md` names modules, and no keys."""
ROLES = ("planner", "code_interpreter", "code_generator", *INTERPRETERS, *EXT_ROLES)
SECTIONS = {name.partition(".")[0] for name in BY_NAME if "{" not in name} | {*ROLES}
NO_KEYS = {
    "session.metadata", "session.planner", "session.update_session_var",
    "session.worker_instances", "session.workspace", "session.prompts",  # in a program
    "session.answer", "session.core",
    "session.restoring", "session.snapshots", "session.states",  # modules
    "mcp.method.name", "server.address", "server.port",  # of a span
    "memory.db_path",  # of AI-Scientist-v2, read as an option
    "search.formats",  # of SearXNG
}  # fmt: skip
"""Names in documents that only look like keys."""
_KEY = re.compile(r"`([a-z_]+\.[a-z0-9_.]+)`")
_FILE = re.compile(r"\.(py|yaml|yml|json|jsonl|md|log|lock|sqlite|txt|html|csv|ipynb)$")


def test_every_key_is_named_in_tests() -> None:
    """By its name or variable, or by its last part where tests give those as arguments."""
    files = (file for file in TEST_FOLDER.rglob("*.py") if "config" not in file.parts)
    tests = "\n".join(file.read_text("utf-8") for file in files)
    names = set(re.findall(r"[\w.]+", tests)) | {f"{n}=" for n in re.findall(r"\b(\w+)=", tests)}
    quoted = set(" ".join(re.findall(r"""["']([\w ]+)["']""", tests)).split())
    roles = {f"{{role}}.{name.rpartition('.')[2]}" for name in names if find(name)}

    def is_set(key: str) -> bool:
        last = key.rpartition(".")[2].removesuffix("_budget_chars")
        whole = {key, key.replace(".", "__"), env_name(key)} & (names | roles)
        return bool(whole) or f"{last}=" in names or last in quoted

    assert [key for key in BY_NAME if not is_set(key)] == []


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_a_document_names_only_keys_that_exist(page: Path) -> None:
    named = set(_KEY.findall(page.read_text("utf-8"))) - NO_KEYS
    keys = {name for name in named if name.partition(".")[0] in SECTIONS and not _FILE.search(name)}
    unknown = {name for name in keys if find(name) is None and removed(name) is None}
    assert not {name for name in unknown if provider_key(name) is None}
