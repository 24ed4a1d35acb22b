"""Which faults the tests of a folder find: a sample of mutants, each run against its tests.

Takes the folder of the package, as `taskweaver/llm`; `--tests` names that of the tests. A mutant is
changed code of a line that `contexts.py` saw run; at most 60 of its tests are tried, in a copy of
the work tree. Prints the mutants, and the tests that have neither a line nor a mutant of their own.
The matrix of mutants and tests stays in `.coverage-contexts/`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import contexts
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

_MOST_TESTS = 60
_BINARY = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "BitAnd_BitOr")
_COMPARED = ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Is_IsNot", "IsNot_Is")
OPERATORS = [
    *(f"ReplaceBinaryOperator_{pair}" for pair in _BINARY),
    *(f"ReplaceComparisonOperator_{pair}" for pair in _COMPARED),
    *("AddNot", "ReplaceUnaryOperator_Delete_Not", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "NumberReplacer", "ExceptionReplacer"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"),
]


def main() -> int:
    """Run the mutants of a folder, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--tests", help="folder of the tests; tests/x for taskweaver/x")
    parser.add_argument("-n", "--number", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tests = given.tests or given.folder.replace("taskweaver", "tests", 1)
    kept = contexts.result_path(tests)
    measured = json.loads(kept.read_text("utf-8")) if kept.exists() else contexts.measure(tests)
    lines = {
        line: names
        for line, names in measured["lines"].items()
        if Path(line).is_relative_to(given.folder)
    }
    draw, results = random.Random(given.seed), []
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copy = contexts.copy_of_repository(Path(place) / "copy")
        for mutant in sample(lines, given.number, draw):
            names = lines[mutant["line"]]
            chosen = sorted(draw.sample(names, min(_MOST_TESTS, len(names))))
            limit = 30 + 3 * sum(measured["seconds"][name] for name in chosen)
            found = killers(copy, mutant, chosen, limit)
            outcome = f"killed by {len(found)}" if found else "SURVIVED"
            place_and_change = f"{mutant['line']}  {mutant['change']}"
            print(f"{outcome:>13} of {len(chosen):>2}  {place_and_change}", flush=True)
            results.append(mutant | {"tests": chosen, "killed_by": found})
    contexts.result_path(given.folder, "mutants").write_text(json.dumps(results, indent=1))
    report(measured, results, tests)
    return 0


def sample(lines: dict[str, list[str]], number: int, draw: random.Random) -> list[dict[str, Any]]:
    """Return mutants of lines: the place, the file's new text, and the change."""
    files = sorted({line.rpartition(":")[0] for line in lines})
    every = [found for file in files for found in mutations(file) if found[0] in lines]
    mutants = []
    for line, operator, occurrence in draw.sample(every, min(number, len(every))):
        before = (contexts.ROOT / line.rpartition(":")[0]).read_text("utf-8")
        after = mutate_code(before, get_operator(f"core/{operator}")(), occurrence)
        changed = zip(before.splitlines(), after.splitlines(), strict=True)
        change = next(f"{old.strip()} -> {new.strip()}" for old, new in changed if old != new)
        mutants.append({"line": line, "operator": operator, "change": change, "text": after})
    return mutants


def mutations(file: str) -> Iterator[tuple[str, str, int]]:
    """Return the line, the operator and the occurrence of each mutation of a file."""
    tree = get_ast((contexts.ROOT / file).read_text("utf-8"))
    nodes = list(ast_nodes(tree))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (line, _) in enumerate(places):
            yield f"{file}:{line}", name, occurrence


def killers(copy: Path, mutant: dict[str, Any], chosen: list[str], limit: float) -> list[str]:
    """Return the tests that fail with a mutant, or hang; all where none even starts."""
    path, log = copy / mutant["line"].rpartition(":")[0], copy.parent / "log"
    before = path.read_text("utf-8")
    log.unlink(missing_ok=True)
    path.write_text(mutant.pop("text"), "utf-8")
    try:
        status = run_tests(copy, log, chosen, limit)
    finally:
        path.write_text(before, "utf-8")
    noted = list(contexts.outcomes(log))
    if not noted and status:
        return chosen
    ended = {name for name, outcome, _ in noted if outcome != "start"}
    failed = {name for name, outcome, _ in noted if outcome == "failed"}
    hanging = {noted[-1][0]} if status is None and noted else set()
    return sorted(failed | hanging | ({name for name, *_ in noted} - ended))


def run_tests(copy: Path, log: Path, chosen: list[str], limit: float) -> int | None:
    """Run tests in the copy; return the exit status, or None where they were ended."""
    options = (*contexts.PYTEST, "--hypothesis-profile=quick", "-p", "no:cacheprovider", *chosen)
    null, env = subprocess.DEVNULL, contexts.environment(copy, log)
    command = [sys.executable, *options]
    with subprocess.Popen(
        command, cwd=copy, env=env, stdout=null, stderr=null, start_new_session=True
    ) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None


def report(measured: dict[str, Any], mutants: list[dict[str, Any]], folder: str) -> None:
    """Print how many mutants were killed, and the tests without anything of their own."""
    found = [mutant["killed_by"] for mutant in mutants if mutant["killed_by"]]
    own = Counter(tests[0] for tests in measured["lines"].values() if len(tests) == 1)
    own.update(tests[0] for tests in found if len(tests) == 1)
    sizes, kills = contexts.test_sizes(folder), Counter(name for tests in found for name in tests)
    without = [name for name in measured["seconds"] if not own[name]]
    for name in without:
        print(f"{sizes.get(name, 0):>5} lines, kills {kills[name]:>2}  {name}")
    lines = sum(sizes.get(name, 0) for name in without)
    print(
        f"{len(found)} of {len(mutants)} mutants killed. {len(without)} tests ({lines} lines),"
        " listed above, have neither a line nor a mutant of their own."
    )


if __name__ == "__main__":
    sys.exit(main())
