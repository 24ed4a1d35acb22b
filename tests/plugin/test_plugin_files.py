"""Plugin files: what is read from them, shown of them, and said when they are wrong."""

from __future__ import annotations

import ast
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from taskweaver.plugin import PluginError
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry
from taskweaver.utils.files import write_yaml
from taskweaver.utils.redact import MASK, redact_known

CODE = "from taskweaver.plugin import register_plugin\n\n@register_plugin\ndef f(x): return x\n"


def content(**changes: Any) -> dict[str, Any]:
    plain = {
        "name": "shout",
        "description": "Makes text loud.",
        "parameters": [
            {"name": "text", "type": "str", "required": True, "description": "What to say."},
            {"name": "times", "type": "int", "description": "How often."},
        ],
        "returns": [{"name": "loud", "type": "str", "description": "The text, loud."}],
    }
    return plain | changes


def put(folder: Path, stem: str = "shout", code: str | None = CODE, **changes: Any) -> Path:
    write_yaml(folder / f"{stem}.yaml", content(name=stem) | changes)
    if code is not None:
        (folder / f"{stem}.py").write_text(code)
    return folder / f"{stem}.yaml"


def test_an_entry_comes_back_from_its_own_form() -> None:
    more = {"code": "loud", "examples": "shout('x')", "configurations": {"a": 1}, "required": True}
    entry = PluginEntry.from_yaml_content(content(**more))
    assert PluginEntry.from_yaml_content(entry.to_dict()) == entry


def test_a_stub_is_python_a_model_can_read() -> None:
    text = PluginEntry.from_yaml_content(content(examples='shout("x")')).format_prompt()
    assert text == (
        '# Makes text loud.\n# Examples:\n# shout("x")\n# Returns loud: The text, loud.\n'
        "def shout(\n    # What to say.\n    text: str,\n"
        "    # How often.\n    times: int | None = None,\n) -> str: ..."
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": [], "returns": []},
        {"parameters": [{"name": "a", "type": "one of 'x', 'y'"}]},
        {"parameters": [{"name": "a"}, {"name": "b", "required": True}]},
        {"returns": [{"name": "a", "type": "pd.DataFrame"}, {"name": "b", "description": "x\ny"}]},
        {"description": "several\nlines"},
        {"returns": [{"name": "the result, described", "description": "all of it"}]},
        {"parameters": [{"name": "a", "type": None, "description": None}], "examples": None},
    ],
)
def test_every_stub_is_valid_python(changes: dict[str, Any]) -> None:
    tree = ast.parse(PluginEntry.from_yaml_content(content(**changes)).format_prompt())
    assert isinstance(tree.body[0], ast.FunctionDef)


def test_a_planning_role_gets_one_line() -> None:
    line = PluginEntry.from_yaml_content(content()).spec.plugin_description()
    assert line == "- shout: Makes text loud. Arguments required: text: str"
    line = PluginEntry.from_yaml_content(content(parameters=[])).spec.plugin_description()
    assert line == "- shout: Makes text loud."


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": None}, "`name` is missing"),
        ({"name": "two words"}, "`name` must be a name Python allows"),
        ({"name": "class"}, "`name` must be a name Python allows"),
        ({"description": 3}, "`description` must be a text"),
        ({"parameters": None}, "`parameters` must be a list"),
        ({"parameters": "x"}, "`parameters` must be a list"),
        ({"returns": ["x"]}, r"`returns\[0\]` must be a mapping"),
        ({"parameters": [{"name": "a"}, {}]}, r"`parameters\[1\].name` is missing"),
        ({"parameters": [{"name": "a"}, {"name": "a"}]}, "names 'a' twice"),
        ({"enabled": "yes please"}, "`enabled` must be true or false"),
        ({"configurations": [1]}, "`configurations` must be a mapping"),
        ({"configurations": {date(2024, 1, 1): 1}}, "`configurations` must be plain data"),
        ({"code": "../other"}, "`code` must be a file in the same folder"),
        ({"code": ""}, "`code` must be a file"),
    ],
)
def test_a_wrong_key_is_named_with_its_file(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    path = tmp_path / "shout.yaml"
    write_yaml(path, content(**changes))
    with pytest.raises(PluginError, match=problem) as caught:
        PluginEntry.from_yaml_file(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "just text", "", "- a"])
def test_a_file_that_is_no_description_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(PluginError, match=r"x\.yaml"):
        PluginEntry.from_yaml_file(path)
    with pytest.raises(PluginError, match="cannot be read"):
        PluginEntry.from_yaml_file(tmp_path / "none.yaml")


def test_a_broken_plugin_is_reported_and_the_others_work(tmp_path: Path) -> None:
    put(tmp_path, "good")
    put(tmp_path, "no_code", code=None)
    put(tmp_path, "no_python", code="def (")
    put(tmp_path, "twin", name="good")
    (tmp_path / "no_text.yaml").write_bytes(b"\xff\xfe")
    put(tmp_path, "no_text_code").with_suffix(".py").write_bytes(b"\xff\xfe")
    registry = PluginRegistry(tmp_path)
    assert list(registry.plugins) == ["good"]
    said = {name: error.problem for name, error in registry.broken.items()}
    assert sorted(said) == ["no_code", "no_python", "no_text", "no_text_code", "twin"]
    assert "cannot be read" in said["no_code"]
    assert "no_python.py is not Python" in said["no_python"]
    assert "another plugin called 'good'" in said["twin"]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    registry = PluginRegistry(tmp_path / "later")
    assert (registry.plugins, registry.broken) == ({}, {})
    (tmp_path / "later").mkdir()
    path = put(tmp_path / "later", "shout", code="def (")
    assert not registry.plugins
    assert registry.broken
    path.with_suffix(".py").write_text(CODE)
    assert list(registry.plugins) == ["shout"]
    assert registry.broken == {}
    first = registry.plugins["shout"]
    assert registry.plugins["shout"] is first
    path.unlink()
    assert registry.plugins == {}


def test_the_kit_can_be_imported_without_anything_heavy() -> None:
    code = "import sys, taskweaver.plugin; print({'yaml', 'injector', 'pandas'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", code]).strip() == b"set()"


def test_a_configured_password_is_known_as_a_secret(tmp_path: Path) -> None:
    settings = {"password": "of-the-price-service", "server": "prices.example", "key": "/a/file"}
    put(tmp_path, configurations={"service": settings})
    assert "shout" in PluginRegistry(tmp_path).plugins
    text = "prices.example of-the-price-service /a/file"
    assert redact_known(text) == f"prices.example {MASK} /a/file"
