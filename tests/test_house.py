"""Rules of the house that no linter checks."""

from __future__ import annotations

import ast
import tomllib
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
        long: Functions that are too long, with their lines.
        attacks: What could run or build something out of data or text.
    """

    lines: int
    long: list[str]
    attacks: list[str]


@cache
def facts(file: Path) -> Facts:
    """Read a file once for all tests; its tree is not kept, for it is large."""
    source = file.read_text(encoding="utf8")
    tree = ast.parse(source)
    long = [
        f"{node.name} ({node.end_lineno - node.lineno + 1})"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION
    ]
    return Facts(source.count("\n"), long, _attacks(tree))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_file_and_its_functions_are_short(file: Path) -> None:
    found = facts(file)
    assert found.lines <= MAX_FILE, f"{file} is over {MAX_FILE} lines: split it by purpose"
    assert not found.long, f"functions over {MAX_FUNCTION} lines: {', '.join(found.long)}"


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("__init__.py")), ids=str)
def test_an_init_defines_nothing(file: Path) -> None:
    body = ast.parse(file.read_text(encoding="utf8")).body
    defined = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert not defined


RUNS_CODE = {"plugin/register.py", "ces/inkernel", "treesearch/execution/worker_"}
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


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_data_is_never_code_nor_a_template(file: Path) -> None:
    place = file.relative_to(PACKAGE).as_posix()
    if not any(place.startswith(folder) for folder in RUNS_CODE):
        assert facts(file).attacks == []


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
    found = next(rule for rule in contracts if "utils.safe_fs" in rule["name"])
    return list(found["source_modules"])


@pytest.mark.parametrize("module", _hostile_modules())
def test_no_file_is_written_by_path_where_sandboxed_code_writes(module: str) -> None:
    file = PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
    called = [
        node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)
    ]
    names = {func.attr for func in called if isinstance(func, ast.Attribute)}
    names |= {func.id for func in called if isinstance(func, ast.Name)}
    assert not names & _BY_PATH
