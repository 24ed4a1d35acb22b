"""Syntax trees are built by one thread at a time where the interpreter requires it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

from taskweaver.utils import parsing

PACKAGE = Path(parsing.__file__).parents[1]
CONVERSIONS = re.compile(
    r"\bast\.parse\(|\bliteral_eval\(|\binspect\.signature\(|PyCF_ONLY_AST"
    r"|from ast import|from inspect import .*\bsignature\b"
)


def test_the_rest_of_the_package_but_kernels_builds_no_trees_itself() -> None:
    files = {file.relative_to(PACKAGE).as_posix(): file for file in PACKAGE.rglob("*.py")}
    found = [place for place, file in files.items() if CONVERSIONS.search(file.read_text("utf-8"))]
    others = [place for place in found if not place.startswith("ces/inkernel/")]
    assert others == ["utils/parsing.py"], "use taskweaver.utils.parsing instead"


def test_what_it_reads() -> None:
    assert [type(node) for node in parsing.parse("a = 1").body] == [ast.Assign]
    assert isinstance(parsing.parse_expression("a + 1").body, ast.BinOp)
    assert parsing.literal_value("{'a': [1, None]}") == {"a": [1, None]}
    assert list(parsing.signature_of(len).parameters) == ["obj"]
    with pytest.raises(SyntaxError) as refused:
        parsing.parse("a = (", "cell.py")
    assert refused.value.filename == "cell.py"


RACES = """
import contextlib, gc, threading
from taskweaver.code_interpreter.code_verification.policy_check import Policy, verify
from taskweaver.utils import parsing

cell = "\\n".join(f"x{n} = [{n}, (lambda y: y + {n})(1)]" for n in range(300))
verify("", Policy())  # imports what the check needs
wanted, done, errors = threading.Semaphore(0), threading.Semaphore(0), []

def other():
    while True:
        wanted.acquire()
        if is_over:
            return
        parsing.parse("b = [1, 2]")
        done.release()

def let_others_run(phase, info):
    if phase == "start" and threading.current_thread() is threading.main_thread():
        wanted.release()
        done.acquire(timeout=0.05)

def race():
    errors.clear()
    for _ in range(5):
        errors.extend(verify(cell, Policy()))
    print(len(errors), *errors)

is_over = False
thread = threading.Thread(target=other)
thread.start()
gc.callbacks.append(let_others_run)
gc.set_threshold(2000)
race()
parsing._CONVERSIONS = contextlib.nullcontext()
race()
gc.callbacks.clear()
is_over = True
wanted.release()
thread.join()
"""
"""Code is checked while each garbage collection gives another thread the time to parse.

It is done with the lock and without it; a line has the number of errors, and the errors.
"""


@pytest.mark.skipif(not parsing.NEEDS_LOCK, reason="this version of Python has no defect")
def test_a_check_is_disturbed_by_another_thread_without_the_lock_alone() -> None:
    command = [sys.executable, "-c", RACES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    with_lock, without = done.stdout.splitlines()
    assert with_lock == "0"
    assert "AST constructor recursion depth mismatch" in without
