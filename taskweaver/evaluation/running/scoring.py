"""Score of a case: its checks after the last step, and scoring points of the original."""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taskweaver.errors import TaskWeaverError
from taskweaver.evaluation.checks.answers import shown
from taskweaver.evaluation.checks.check import ScoringPoint
from taskweaver.memory.attachment import AttachmentType
from taskweaver.session.session import Session
from taskweaver.utils.parsing import parse

_HISTORY = """\
import json, sys, types
sys.path.insert(0, ".")
class HumanMessage(types.SimpleNamespace): type = "human"
class AIMessage(types.SimpleNamespace): type = "ai"
chat_history = [kind(content=text) for pair in json.loads({turns!r})
    for kind, text in zip((AIMessage, HumanMessage), pair)]
agent_response = chat_history[-1].content if chat_history else ""
"""
"""As the original has it: the model that plays the user is the AI, the agent the human."""


@dataclass(frozen=True, slots=True)
class CaseScore:
    """Score of a case.

    Attributes:
        score: Share of the weights of the checks that are met, from 0 to 1.
        problems: A problem for each check that is not met.
    """

    score: float
    problems: tuple[str, ...]


def holds(session: Session, expression: str) -> str:
    """Evaluate an expression in a session's kernel; return the problem, empty if it is true."""
    return run_check(session, f"assert ({expression}), 'it is false'", expression)


def run_check(session: Session, code: str, name: str) -> str:
    """Run a cell of a check; return the problem, empty if it runs to its end.

    Args:
        session: The session, whose conversation gets a round more.
        code: The cell.
        name: Name of the check, for the problem.
    """
    try:
        round_ = session.run_code(code)
    except TaskWeaverError as error:
        return f"{shown(name)!r} cannot be checked: {error}"
    post = round_.post_list[-1]
    states = post.get_attachment(AttachmentType.execution_status)
    if states and str(states[-1].content) == "SUCCESS":
        return ""
    lines = [line.strip() for line in post.message.splitlines() if "Error" in line]
    return f"{shown(name)!r} does not hold: {shown(lines[-1] if lines else post.message)}"


def point_cell(point: ScoringPoint, turns: Sequence[tuple[str, str]]) -> str:
    """Return the cell that decides a scoring point with code."""
    start = _HISTORY.replace("{turns!r}", repr(json.dumps([list(turn) for turn in turns])))
    if not _returns(point.code):
        return start + point.code
    body = textwrap.indent(point.code, "    ")
    return (
        f"{start}def check_agent_response(agent_response):\n{body}\n"
        "assert check_agent_response(agent_response) is not False"
    )


def score_of(
    points: Sequence[ScoringPoint], decide: Callable[[ScoringPoint], str], problems: Sequence[str]
) -> CaseScore:
    """Return the score of a case.

    Args:
        points: Scoring points; without any the problems alone decide.
        decide: Returns the problem of a point, empty if it is met.
        problems: Problems of the checks.
    """
    found = [(point.weight, decide(point)) for point in points]
    found += [(1.0, problem) for problem in problems]
    total = sum(weight for weight, _ in found)
    met = sum(weight for weight, problem in found if not problem)
    return CaseScore(
        met / total if total else 1.0, tuple(problem for _, problem in found if problem)
    )


def _returns(code: str) -> bool:
    """Return whether code is the body of a function: it returns outside of its own functions."""
    try:
        nodes: list[ast.AST] = list(parse(code).body)
    except (SyntaxError, ValueError):
        return False
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
    return False
