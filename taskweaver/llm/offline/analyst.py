"""The offline analyst's replies: as Planner, as code writer, as summariser. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taskweaver.llm.offline.attempts import told_of_attempt
from taskweaver.llm.offline.cells import cell
from taskweaver.llm.offline.grammar import Request, parse
from taskweaver.llm.offline.loading import look, variable
from taskweaver.llm.offline.reading import (
    Said,
    changed_files,
    live,
    section,
    table_in,
    tables,
    unfenced,
    variables,
)
from taskweaver.llm.offline.understanding import Ask, Look, Ready, understand
from taskweaver.llm.offline.wording import task
from taskweaver.llm.types import ChatMessage
from taskweaver.utils.text import shorten

HELP = """\
I am the built-in offline analyst: rules, not a language model. Over CSV, TSV, JSON, Parquet,
Excel and SQLite files I understand, for example:

- `describe sales.csv`, `columns of sales.csv`, `first 10 rows`, `missing values in sales.csv`
- `mean of Count per month in sales.csv, and plot it`, `total Price by Region and Product`
- `top 5 products by total Price`, `rows where Count > 10 and Region is North`, `... in 2024`
- `correlation of Price and Count`, `outliers in Price`, `histogram of Price`, `bar chart of Region`
- `run this SQL on shop.db: SELECT ...`, `run this code: ...`, `17 * 23`
- then `and now plot it`, `the same by Region`, `now the median`

For anything else, use a real model: set `LLM_API_KEY`, or `LLM_API_TYPE=ollama` for a local
one; see docs/models.md."""

ONLY_PYTHON = (
    "The built-in offline analyst writes no shell commands. Use a real model: set `LLM_API_KEY`, or"
    " `LLM_API_TYPE=ollama` for a local one; see docs/models.md."
)
_IMAGE = re.compile(r"https?://\S+|[^\s'\"`(]+\.(?:png|jpe?g|gif|webp)\b", re.IGNORECASE)
_FINAL = ("FileNotFoundError", "EmptyDataError")
_NOT_UNDERSTOOD = "I did not understand that.\n\n"
_SUMMARY_CHARS = 3_000
_LEADS = {
    "Compute ": "Here is ",
    "Show the ": "Here are the ",
    "Show a ": "Here is a ",
    "List the ": "Here are the ",
    "Find ": "Here are ",
    "Count the ": "Here is the number of ",
}


def as_planner(messages: Sequence[ChatMessage], recipients: Sequence[str]) -> dict[str, str]:
    """Return the fields of a Planner's reply."""
    said = live(messages)
    workers = [name for name in recipients if name != "User"]
    worker = "CodeInterpreter" if "CodeInterpreter" in workers else next(iter(workers), "User")
    newest = said[-1]
    if newest.sender not in workers:
        return _next_step(said, worker)
    fields = _after_report(said, newest, worker)
    plans = [item.fields["plan"] for item in _this_round(said) if "plan" in item.fields]
    if fields["send_to"] == "User" and plans:
        fields |= {"plan": plans[-1], "current_plan_step": plans[-1].splitlines()[-1]}
    return fields


def _next_step(said: Sequence[Said], worker: str) -> dict[str, str]:
    known = tables(said)
    wanted = understand(said, known)
    is_vague = isinstance(wanted, Ask) and not known
    if is_vague or (isinstance(wanted, Ready) and wanted.request.kind == "unknown"):
        told = told_of_attempt(said)
        if told:
            return _to_user(told, "Completed", "the user asks about an attempt of a search")
    match wanted:
        case Ask(question):
            return _to_user(question, "Clarification", "something is not clear")
        case Look(file):
            order = task(Request("columns", file))
            plan = f"1. Look at the columns of {file}\n2. Compute what was asked"
            return _order(worker, order, plan, f"I need the columns of {file} first.", step=1)
        case Ready(request) if request.kind == "help":
            return _to_user(HELP, "Completed", "the user wants to know what I can do")
        case Ready(request) if request.kind == "unknown":
            return _to_user(
                _NOT_UNDERSTOOD + HELP, "TaskFailure", "the request is outside my rules"
            )
        case Ready(request):
            order = task(request)
            has_looked = any(table_in(item.text) for item in _this_round(said))
            goal = order.splitlines()[0].rstrip(":.")
            plan = (
                f"1. Look at the columns of {request.file}\n2. {goal}"
                if has_looked
                else f"1. {goal}"
            )
            return _order(
                worker, order, plan, "This can be computed in one step.", step=1 + has_looked
            )
    raise AssertionError("every understanding is handled")


def _this_round(said: Sequence[Said]) -> Sequence[Said]:
    starts = [index for index, item in enumerate(said) if item.sender == "User"]
    return said[starts[-1] :] if starts else said


def _after_report(said: Sequence[Said], report: Said, worker: str) -> dict[str, str]:
    order = next(
        (item.fields.get("message", "") for item in reversed(said) if item.sender == "me"), ""
    )
    if "The code ran to its end." not in section(report.text, "Execution"):
        return _to_user(_failure(report.text, order), "TaskFailure", "the step failed")
    seen = table_in(report.text)
    orders = [item.fields.get("message") for item in _this_round(said) if item.sender == "me"]
    wanted = understand(said, tables(said))
    is_columns = isinstance(wanted, Ready) and wanted.request.kind == "columns"
    if seen is not None and not is_columns and orders.count(order) < 2:
        return _next_step(said, worker)
    return _to_user(_answer(report.text, order), "Completed", "the result answers the request")


def _answer(report: str, order: str) -> str:
    goal = order.splitlines()[0].rstrip(".:").partition(", and plot it")[0]
    lead = f"{goal}:"
    for verb, start in _LEADS.items():
        lead = start + lead.removeprefix(verb) if lead.startswith(verb) else lead
    parts = [lead]
    for title in ("Output", "Result"):
        body = section(report, title)
        parts += [body] if body else []
    artifacts = re.findall(
        r"^- \w+: (.+?)(?: \(.*\))?$", section(report, "Artifacts"), re.MULTILINE
    )
    parts += ["Saved: " + ", ".join(f"`{name}`" for name in artifacts)] if artifacts else []
    return "\n\n".join(parts)


def _failure(report: str, order: str) -> str:
    if not section(report, "Execution"):
        return _with_hint(shorten(report, 2000))
    error = unfenced(section(report, "Error")) or "no reason was given"
    last = _reason(error)
    step = order.splitlines()[0] if order else "the step"
    return _with_hint(f"I could not do this: {step}\n\nThe code failed with: {last}")


def _reason(error: str) -> str:
    """Return the line of an error that says what went wrong."""
    lines = [
        line for line in error.strip().splitlines() if not line.startswith("The Python session")
    ]
    return lines[-1] if lines else "the code failed"


def _with_hint(text: str) -> str:
    if "No such file" not in text and "unable to open database" not in text:
        return text
    return f"{text}\n\nPut the file into the project's data folder, or add it with /load."


def _order(worker: str, order: str, plan: str, why: str, *, step: int) -> dict[str, str]:
    return {
        "plan_reasoning": why,
        "plan": plan,
        "current_plan_step": plan.splitlines()[step - 1],
        "stop": "InProcess",
        "send_to": worker,
        "message": order,
    }


def _to_user(message: str, stop: str, why: str) -> dict[str, str]:
    return {
        "plan_reasoning": why,
        "plan": "1. Tell the user",
        "current_plan_step": "1. Tell the user",
        "stop": stop,
        "send_to": "User",
        "message": message,
    }


def as_code_writer(messages: Sequence[ChatMessage]) -> dict[str, str]:
    """Return the fields of a code writer's reply."""
    said = live(messages)
    newest = said[-1].text
    if section(newest, "Correction"):
        return _corrected(said)
    words = section(newest, "Task") or newest
    known = variables(newest) - {variable(file) for file in changed_files(newest)}
    if section(newest, "User request"):
        return _code(cell(parse(words), known), parse(words))
    return _own_words(said, words, known)


def _own_words(said: Sequence[Said], words: str, known: frozenset[str]) -> dict[str, str]:
    """Answer a user who speaks to the code writer directly."""
    asked = [Said("User", section(i.text, "Task")) for i in said if section(i.text, "Task")]
    match understand(asked or [Said("User", words)], tables(said)):
        case Ask(question):
            return _words(question)
        case Look(file):
            return _code(look(file), Request("columns", file))
        case Ready(request) if request.kind in {"help", "unknown"}:
            return _words(HELP if request.kind == "help" else _NOT_UNDERSTOOD + HELP)
        case Ready(request):
            return _code(cell(request, known), request)
    raise AssertionError("every understanding is handled")


def _corrected(said: Sequence[Said]) -> dict[str, str]:
    """Mend a cell once: load and convert more carefully; then say that it cannot be done."""
    tasks = [index for index, item in enumerate(said) if section(item.text, "Task")]
    since = said[tasks[-1] :] if tasks else said
    error = unfenced(section(said[-1].text, "Error"))
    if not error:  # it was refused and did not run
        why = section(said[-1].text, "Correction").partition("\n")[0]
        return _words(f"I could not do this. {why}")
    last = _reason(error)
    request = parse(section(since[0].text, "Task"))
    can_mend = request.kind not in {"code", "sql", "arithmetic", "files", "unknown", "help"}
    is_first = sum(1 for item in since if section(item.text, "Correction")) == 1
    if not (can_mend and is_first) or any(name in last for name in _FINAL):
        return _words(f"I could not do this. The code failed with: {last}")
    return _code(
        cell(
            request,
            frozenset(),
            is_careful=True,
            encoding="latin-1" if "UnicodeDecodeError" in last else "",
        ),
        request,
        thought="I load and convert more carefully.",
    )


def _code(code: str, request: Request, thought: str = "") -> dict[str, str]:
    words = task(request) if request.kind not in {"unknown", "help"} else ""
    if not words:
        return _words("I cannot write code for this task.")
    looks = "I load the file and look at its columns."
    thought = thought or (looks if request.kind == "columns" else "One cell answers this.")
    return {
        "thought": thought,
        "reply_type": "python",
        "reply_content": code,
    }


def _words(text: str) -> dict[str, str]:
    return {"thought": "There is no code to run.", "reply_type": "text", "reply_content": text}


def named_image(text: str) -> str:
    """Return the first address or file name of an image in a text; empty for none."""
    match = _IMAGE.search(text)
    return match[0].rstrip(".,;:!?)'\"`") if match else ""


def summary(text: str) -> str:
    """Return an extract of a conversation: requests, first lines of messages, errors."""
    wanted = re.compile(r"^(?:---|the user asked|.*->|.*error|.*saved|- |#)", re.I)
    lines = [line.strip() for line in text.splitlines() if wanted.match(line.strip())]
    return shorten("\n".join(lines) or text, _SUMMARY_CHARS)
