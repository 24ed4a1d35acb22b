"""Every configuration key has a test of its effect, and documents name only keys that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from key_tests import TESTS

from taskweaver.config.keys.known_keys import BY_NAME, find
from taskweaver.config.keys.roles import EXT_ROLES, INTERPRETERS
from taskweaver.config.replaced import provider_key, removed

TEST_FOLDER = Path(__file__).parents[1]
DOCS = sorted({*(TEST_FOLDER.parent / "docs").glob("*.md")} - {TEST_FOLDER.parent / "docs/map.md"})
"""The documents; `map.md` names modules, and no keys."""
ROLES = ("planner", "code_interpreter", "code_generator", *INTERPRETERS, *EXT_ROLES)
SECTIONS = {name.partition(".")[0] for name in BY_NAME if "{" not in name} | {*ROLES}
PROVIDERS = BY_NAME["llm.api_type"].choices
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


@cache
def facts(file: str) -> tuple[str, dict[str, bool]]:
    """Return the text of a file of tests, and its tests, with whether `make test` has them."""
    source = (TEST_FOLDER / file).read_text("utf-8")
    marks = re.search(r"^pytestmark = .*?\blong\b", source, re.MULTILINE)
    names = {
        node.name: not marks and "pytest.mark.long" not in map(ast.unparse, node.decorator_list)
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }
    return source, names


def test_every_key_has_a_test_and_every_row_a_key() -> None:
    missing, unknown = set(BY_NAME) - set(TESTS), set(TESTS) - set(BY_NAME)
    assert not missing, f"tests/config/key_tests.py has no row for {sorted(missing)}"
    assert not unknown, f"tests/config/key_tests.py names keys that are gone: {sorted(unknown)}"


def test_the_tests_of_keys_are_in_the_gate_and_name_them() -> None:
    for key, test in TESTS.items():
        file, _, name = test.partition("::")
        source, names = facts(file)
        assert name in names, f"{file} has no test {name}, the one of {key}"
        assert names[name], f"{name}, the test of {key}, is left out by `make test`"
        last = key.rpartition(".")[2]
        words = {last, last.removesuffix("_budget_chars")}
        is_named = any(re.search(rf"(?<![a-z]){word}", source) for word in words)
        assert is_named, f"{file} does not set {key}"


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_a_document_names_only_keys_that_exist(page: Path) -> None:
    named = set(_KEY.findall(page.read_text("utf-8"))) - NO_KEYS
    keys = {name for name in named if name.partition(".")[0] in SECTIONS and not _FILE.search(name)}
    unknown = {name for name in keys if find(name) is None and removed(name) is None}
    assert not {name for name in unknown if provider_key(name, PROVIDERS) is None}
