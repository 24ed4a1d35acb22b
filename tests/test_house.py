"""Rules of the house that no linter checks."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "taskweaver"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_FILE, MAX_FUNCTION = 400, 60


@dataclass(frozen=True)
class Facts:
    """What is asked about a file.

    Attributes:
        lines: How many it has.
        defines: Functions and classes at its top.
        long: Functions that are too long, with their lines.
        attacks: What could run or build something out of data or text.
    """

    lines: int
    defines: list[str]
    long: list[str]
    attacks: list[str]


@cache
def facts(file: Path) -> Facts:
    """Read a file once for all tests; its tree is not kept, for it is large."""
    source = file.read_text(encoding="utf8")
    tree = ast.parse(source)
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    defines = [node.name for node in tree.body if isinstance(node, functions | ast.ClassDef)]
    long = [
        f"{node.name} ({node.end_lineno - node.lineno + 1})"
        for node in ast.walk(tree)
        if isinstance(node, functions)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION
    ]
    return Facts(source.count("\n"), defines, long, _attacks(tree))


def by_file(found: Callable[[Facts], list[str]], files: list[Path] = FILES) -> dict[str, list[str]]:
    """Return what was found in each file where there was something."""
    places = {file.relative_to(PACKAGE).as_posix(): found(facts(file)) for file in files}
    return {place: items for place, items in places.items() if items}


def test_files_and_their_functions_are_short() -> None:
    long_files = by_file(lambda found: [f"{found.lines} lines"] if found.lines > MAX_FILE else [])
    assert long_files == {}, f"over {MAX_FILE} lines: split by purpose"
    assert by_file(lambda found: found.long) == {}, f"functions over {MAX_FUNCTION} lines"


def test_an_init_defines_nothing() -> None:
    inits = [file for file in FILES if file.name == "__init__.py"]
    assert by_file(lambda found: found.defines, inits) == {}


RUNS_CODE = {"plugin/register.py", "ces/inkernel", "treesearch/execution/executors/worker_"}
"""Where code is run on purpose; workers are our own processes, and never run a node's programs."""
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
SAFE_LOADERS = {"_loader()"}


def _attacks(tree: ast.AST) -> list[str]:
    """Return what could run or build something out of data or text."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [name for name in names if name.partition(".")[0] in FORBIDDEN_MODULES]
        if isinstance(node, ast.Call):
            found += _odd_call(node)
    return found


def _odd_call(node: ast.Call) -> list[str]:
    name = ast.unparse(node.func)
    values = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    method = name.rpartition(".")[2]
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    loader = values.get("Loader") or (ast.unparse(node.args[1]) if len(node.args) > 1 else "")
    reasons = {
        "runs code": name in {"eval", "exec", "__import__", "builtins.eval", "builtins.exec"},
        "unpickles": values.get("allow_pickle") == "True" or method in {"read_pickle", "unpickle"},
        "loads any object": method in {"unsafe_load", "full_load", "load_all"}
        or (name == "yaml.load" and loader not in SAFE_LOADERS)
        or (name == "torch.load" and values.get("weights_only") != "True"),
        "goes through a shell": values.get("shell") == "True"
        or name in {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"},
        "takes text for a template": method in {"format", "format_map", "vformat"}
        and receiver is not None
        and not (isinstance(receiver, ast.Constant) or "formatter" in name or "super()" in name),
    }
    return [f"{name} {reason} (line {node.lineno})" for reason, is_so in reasons.items() if is_so]


def test_data_is_never_code_nor_a_template() -> None:
    found = by_file(lambda found: found.attacks)
    elsewhere = {place: found[place] for place in found if not place.startswith(tuple(RUNS_CODE))}
    assert elsewhere == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle", "from shelve import open", "eval(x)", "exec(x)", "yaml.load(x)",
        "yaml.load(x, Loader=yaml.Loader)", "np.load(f, allow_pickle=True)", "run(x, shell=True)",
        "text.format(a=1)", "template.format_map(d)", "os.system(x)", "pd.read_pickle(f)",
        "yaml.unsafe_load(x)", "torch.load(f)",
    ],
)  # fmt: skip
def test_the_check_of_code_sees(source: str) -> None:
    assert _attacks(ast.parse(source))


_BY_PATH = {
    "chmod", "hardlink_to", "mkdir", "open", "rename", "rmdir", "symlink_to", "touch", "unlink",
    "write_bytes", "write_text",
}  # fmt: skip


def _hostile_modules() -> list[str]:
    with (PACKAGE.parent / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    found = next(rule for rule in contracts if "file_system.safe_fs" in rule["name"])
    return list(found["source_modules"])


def test_no_file_is_written_by_path_where_sandboxed_code_writes() -> None:
    written = {}
    for module in _hostile_modules():
        file = PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
        tree = ast.walk(ast.parse(file.read_text()))
        called = [node.func for node in tree if isinstance(node, ast.Call)]
        names = {func.attr for func in called if isinstance(func, ast.Attribute)}
        names |= {func.id for func in called if isinstance(func, ast.Name)}
        written[module] = names & _BY_PATH
    assert {module: names for module, names in written.items() if names} == {}
