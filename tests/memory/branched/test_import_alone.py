"""The branched memory as a library of its own: imports, lazy names, defaults."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

import taskweaver
from taskweaver.config.config_mgt import AppConfigSource, env_name
from taskweaver.config.keys.known_keys import BY_NAME
from taskweaver.memory.branched import MemoryConfig, instructions
from taskweaver.memory.branched_config import read_memory_config

PACKAGE = Path(taskweaver.__file__).parent
ALLOWED = ("taskweaver.errors", "taskweaver.utils", "taskweaver.memory.branched")
ELSEWHERE = {"memory.enabled", "memory.memory_log_dir", "memory.prompt_dir"}
"""Keys under ``memory.`` whose value an application works out or uses itself."""

REFUSING = """
import importlib.abc, json, sys
sys.path.insert(0, sys.argv[1])
allowed = tuple(sys.argv[2].split())
foreign = []

class Refusing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        is_parent = name in {"taskweaver", "taskweaver.memory"}
        root = name.partition(".")[0]
        if is_parent or name.startswith(allowed) or root in sys.stdlib_module_names:
            return None
        foreign.append(name)
        raise ModuleNotFoundError(f"{name} is out of reach")

sys.meta_path.insert(0, Refusing())
before = set(sys.modules)
"""
EVERY_MODULE = """
import importlib, pkgutil
import taskweaver.memory.branched as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
"""
A_MEMORY = """
from pathlib import Path
from taskweaver.memory.branched import MemoryManager

with MemoryManager(Path(sys.argv[3]) / "memory.sqlite") as memory:
    memory.create_branch(None, branch_id="run", live=True)
    memory.mem_core_set("goal", "a faster solver", importance=5, branch_id="run")
    memory.fork("run", "idea")
    memory.mem_recall_append({"kind": "node_result", "content": "1.4 s"}, branch_id="idea")
    memory.mem_archival_write("Blocks fit the cache.", tags=["SUCCESS"], branch_id="idea")
    assert memory.mem_archival_search("cache", branch_id="idea")
    assert "a faster solver" in memory.render_for_prompt("idea", task="cache")
    memory.export(Path(sys.argv[3]) / "all.jsonl")
    memory.generate_final_memory_for_paper(sys.argv[3], "run", "idea")
    memory.write_page(Path(sys.argv[3]) / "memory.html")
    assert not memory.verify().problems
"""
LOADED = """
assert set(foreign) <= {"org"}, foreign  # the module copy of the standard library looks for Jython
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def alone(code: str, folder: Path) -> set[str]:
    """Run code where only this package's files are importable; return the modules it loaded."""
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", REFUSING + code + LOADED,
         str(PACKAGE.parent), " ".join(ALLOWED), str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("code", [EVERY_MODULE, A_MEMORY], ids=["every module", "a memory"])
def test_it_works_with_the_standard_library_alone(code: str, tmp_path: Path) -> None:
    alone(code, tmp_path)


def test_its_import_loads_no_module_without_need(tmp_path: Path) -> None:
    code = "from taskweaver.memory.branched import MemoryManager"
    loaded = alone(code, tmp_path)
    rarely = {
        "asyncio", "ctypes", "importlib.metadata", "importlib.resources",
        "multiprocessing", "platform", "shutil", "subprocess", "tempfile", "uuid",
    }  # fmt: skip
    assert not rarely & loaded
    names = {name for name in loaded if name.startswith("taskweaver")}
    assert "taskweaver.memory.branched.repair" not in names
    bare = alone("import taskweaver.memory.branched", tmp_path)
    assert {name for name in bare if name.startswith("taskweaver")} == {
        "taskweaver", "taskweaver.utils", "taskweaver.utils.lazy",
        "taskweaver.memory", "taskweaver.memory.branched",
    }  # fmt: skip


STUBS = sorted(PACKAGE.rglob("__init__.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_a_package_and_its_stub_name_the_same(stub: Path) -> None:
    name = ".".join(stub.parent.relative_to(PACKAGE.parent).parts)
    package = importlib.import_module(name)
    imports = [
        node for node in ast.parse(stub.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)
    ]
    declared = {alias.name: node.module for node in imports for alias in node.names}
    assert set(declared) == set(package.__all__) - {"__version__"}
    assert len(package.__all__) == len(set(package.__all__))
    for public, module in declared.items():
        assert module is not None
        assert getattr(package, public) is getattr(importlib.import_module(module), public)
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        _ = package.Missing


def test_the_defaults_are_those_of_the_table_of_keys(tmp_path: Path) -> None:
    default = MemoryConfig()
    flat = {f"memory.{item.name}": getattr(default, item.name) for item in fields(default)}
    for name in ("section_budgets", "pressure_thresholds"):
        flat |= {f"memory.{name}.{key}": value for key, value in flat.pop(f"memory.{name}").items()}
    tasks = flat.pop("memory.budgets")
    flat |= {f"memory.{task}_budget_chars": value for task, value in tasks.items()}
    keys = {name: key.default for name, key in BY_NAME.items() if name.startswith("memory.")}
    own = {"memory.log_dir", "memory.prompt_dir", "memory.plain_kinds"}
    assert {name: flat[name] for name in flat.keys() - own} == {
        name: keys[name] for name in keys.keys() - ELSEWHERE
    }
    read = read_memory_config(AppConfigSource(None, {}, tmp_path))
    assert replace(read, prompt_dir=default.prompt_dir) == default


DOCUMENT = Path(__file__).parents[3] / "docs" / "memory.md"


def test_the_document_shows_the_instructions_and_its_programs_print_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(env_name("execution.zygote"), "false")  # no program starts a kernel
    program = re.compile(r"```python\n(.*?)```(?:\n\nIt prints:\n\n```text\n(.*?)```)?", re.DOTALL)
    programs = program.findall(DOCUMENT.read_text("utf-8"))
    assert any(said for _, said in programs)
    assert instructions() in DOCUMENT.read_text("utf-8")
    for code, said in programs:
        exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
        printed = capsys.readouterr().out
        assert printed == said or not said


def test_keys_of_a_configuration_reach_the_memory(tmp_path: Path) -> None:
    values = {
        "memory.core_max_chars": 1200,
        "memory.section_budgets.results": 70,
        "memory.pressure_thresholds.high": 0.5,
        "memory.node_summary_budget_chars": 200,
        "memory.prompt_dir": str(tmp_path),
        "memory.memory_log_dir": "notes",
    }
    read = read_memory_config(AppConfigSource(None, values, tmp_path))
    assert (read.core_max_chars, read.section_budgets["results"]) == (1200, 70)
    assert (read.pressure_thresholds["high"], read.budget("node_summary")) == (0.5, 200)
    assert (read.prompt_dir, read.log_dir) == (tmp_path, tmp_path / "notes")
