"""Which tests of a folder run lines of functions that no other test of it runs.

Takes the folder, and arguments for pytest. The tests run in a copy of the work tree; the lines that
each runs stay in `.coverage-contexts/`, where `mutants.py` looks for them.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coverage import CoverageData
from each_test import outcomes

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / ".coverage-contexts"
PYTEST = ("-m", "pytest", "-p", "each_test", "-q", "--no-header", "--tb=no", "-m", "not long")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def main(folder: str, *options: str) -> int:
    """Run the tests of a folder, and print those without a line of their own."""
    measured = measure(folder, options)
    own = Counter(tests[0] for tests in measured["lines"].values() if len(tests) == 1)
    cover, sizes = greedy_cover(measured["lines"]), test_sizes(folder)
    without = [name for name in measured["seconds"] if not own[name]]
    for name in without:
        print(f"{sizes.get(name, 0):>5} lines {'in cover' if name in cover else '':>9}  {name}")
    print("failed, left out:", measured["failed"])
    for names, what in (
        (measured["seconds"], f"run {len(measured['lines'])} lines of functions"),
        (cover, "cover them"),
        (without, "have no line of their own, see above"),
    ):
        print(f"{len(names)} tests ({sum(sizes.get(n, 0) for n in names)} lines) {what}")
    return 0


def measure(folder: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the seconds of each test, those that failed, and the tests of each line; keep them."""
    with place_for("contexts-") as place:
        copy, log = copy_of_repository(place / "copy"), place / "log"
        env = environment(copy, log) | {"COVERAGE_FILE": str(place / "measured")}
        command = (sys.executable, "-m", "coverage")
        subprocess.run([*command, "run", *PYTEST, *options, folder], cwd=copy, env=env, check=False)
        subprocess.run([*command, "combine", "-q"], cwd=copy, env=env, check=True)
        noted, seconds = outcomes(log), Counter[str]()
        for name, _, took in noted:
            seconds[name] += took
        failed = {name for name, outcome, _ in noted if outcome == "failed"}
        passed = set(seconds) - failed
        measured = {
            "seconds": {name: round(seconds[name], 3) for name in sorted(passed)},
            "failed": sorted(failed),
            "lines": tests_of_lines(copy, Path(env["COVERAGE_FILE"]), passed),
        }
    RESULTS.mkdir(exist_ok=True)
    result_path(folder).write_text(json.dumps(measured))
    return measured


def result_path(folder: str, kind: str = "contexts") -> Path:
    """Return the path of a kept result."""
    return RESULTS / f"{folder.strip('/').replace('/', '_')}-{kind}.json"


@contextmanager
def place_for(prefix: str) -> Iterator[Path]:
    """Give a folder for a copy and for the files of its tests, which may be nested deeply."""
    place = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        (place / "tmp").mkdir()
        yield place
    finally:
        subprocess.run(["rm", "-rf", str(place)], check=False)


def copy_of_repository(copy: Path) -> Path:
    """Copy the files that git has or would take: tests change nothing in the work tree."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, found.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


def environment(copy: Path, log: Path) -> dict[str, str]:
    """Return an environment in which all processes import the package of the copy."""
    path = os.pathsep.join([str(copy), str(copy / ".ci")])
    own = {"PYTHONPATH": path, "EACH_TEST": str(log), "TMPDIR": str(copy.parent / "tmp")}
    return {**os.environ, **own}


def tests_of_lines(copy: Path, data_path: Path, passed: set[str]) -> dict[str, list[str]]:
    """Map each line of a function, as `taskweaver/llm/api.py:12`, to the tests that run it."""
    data = CoverageData(str(data_path))
    data.read()
    found = {}
    for file in sorted(data.measured_files()):
        if not Path(file).is_relative_to(copy):  # a module that a test wrote
            continue
        inside, name = function_lines(Path(file)), Path(file).relative_to(copy).as_posix()
        for line, contexts in sorted(data.contexts_by_lineno(file).items()):
            if line in inside and (tests := sorted(passed.intersection(contexts))):
                found[f"{name}:{line}"] = tests
    return found


def function_lines(path: Path) -> set[int]:
    """Return the lines of functions of a module: others run when it is imported."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, _FUNCTION):
            lines.update(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    return lines


def greedy_cover(lines: dict[str, list[str]]) -> list[str]:
    """Return tests that run all lines, each time the one that adds most."""
    left, cover = [set(tests) for tests in lines.values()], []
    while left:
        cover.append(Counter(sorted(name for tests in left for name in tests)).most_common(1)[0][0])
        left = [tests for tests in left if cover[-1] not in tests]
    return cover


def test_sizes(folder: str) -> dict[str, int]:
    """Map each test function of a folder or file to its number of lines, decorators included."""
    sizes, place = {}, ROOT / folder
    for path in [place] if place.is_file() else sorted(place.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, _FUNCTION) and node.name.startswith("test"):
                first = min([node.lineno, *(made.lineno for made in node.decorator_list)])
                name = f"{path.relative_to(ROOT).as_posix()}::{node.name}"
                sizes[name] = (node.end_lineno or first) - first + 1
    return sizes


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
