"""Texts of the offline analyst that are no results: help, refusals, failures, attempts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taskweaver.analyst.about import in_prose
from taskweaver.analyst.likely_files import MOST_LISTED, MOST_NAMED, naming
from taskweaver.analyst.model.conversation import (
    PromptConversation,
    PromptMessage,
    section,
    unfenced,
)
from taskweaver.analyst.readings import About, NotUnderstood
from taskweaver.tables.files.mentions import find_files, nearest_file
from taskweaver.tables.files.profile import FileInfo, TableProfile, World
from taskweaver.utils.text import counted, fenced, shorten

HELP = """\
I am the built-in offline analyst: rules, not a language model. Over CSV, TSV, JSON, Parquet,
Excel and SQLite files I read requests about columns, values, times, groups and ranks:

- `which files do I have?`, `describe sales.csv`, `first 10 rows`, `missing values in sales.csv`
- `mean Count per month in sales.csv, and plot it`, `total Price by Region and Product`
- `total Price in the North since March 2024`, `Count except North or South`, `in the last 3 months`
- `which Region has the highest mean Price?`, `top 5 Products by total Price`, `share of North`
- `how many customers are from Boston?`, `total quantity per city from orders.csv and customers.csv`
- `run this SQL on shop.db: SELECT ...`, `run this code: ...`, `17 * 23`
- then `and in the South?`, `the same by Region`, `now plot it`

For anything else, connect a model: set `LLM_API_KEY`, or `LLM_API_TYPE=ollama` for a local
one; see 'Which model answers' in the documentation."""

TALK = {
    "help": HELP,
    "hello": "Hello. Ask a question about your files: `what is in it?` is a good first one, and"
    " `help` shows others.",
    "thanks": "You are welcome.",
    "stop": "All right. Ask another question at any time.",
    "who": "I am the built-in offline analyst: rules, not a language model. `help` shows what I"
    " read.",
}
"""Answers to messages that ask nothing of the data, by their topic."""
_HOW = (
    "set `LLM_API_KEY`, or `LLM_API_TYPE=ollama` for a local one; see 'Which model answers' in the"
    " documentation."
)
CONNECT = (
    "I am the built-in offline analyst, rules and no language model: `help` shows examples. For"
    f" other questions connect a model: {_HOW}"
)
ONLY_PYTHON = f"The built-in offline analyst writes no shell commands. Use a real model: {_HOW}"
_MOST_WORDS, _WORD_CHARS, _MOST_COLUMNS = 8, 60, 12
_MOST_DOUBTS = 2
_MOST_TABLES = 5
_ADD = "Put the file into the project's data folder, or add it with /load."
NO_FILES = f"There is no data file. {_ADD}"
_COUNT = re.compile(r"\bhow many\b|\bnumber of\b", re.IGNORECASE)


def refusal(outcome: NotUnderstood, world: World, doubts: Sequence[str] = ()) -> str:
    """Return the answer to a request without a reading; `doubts` tell how its columns were read."""
    parts = [outcome.reason] if outcome.reason else []
    if outcome.words or not outcome.reason:
        files = " or ".join(f"`{name}`" for name in outcome.files[:MOST_NAMED])
        where = f" in {files}" if files else ""
        parts.insert(0, f"I did not understand {_quoted(outcome.words) or 'that'}{where}.")
    parts += [f"{doubt}." for doubt in doubts[-_MOST_DOUBTS:]]
    if outcome.files and not outcome.is_part:
        parts.append("Name the file if it is another one.")
    if outcome.nearest:
        other = "" if outcome.is_part else " another question"
        parts.append(f"Say yes to ask{other}: {outcome.nearest.text}")
    elif outcome.words and len(world.tables) == 1:
        parts.append(_columns(next(iter(world.tables.values()))))
    return " ".join(parts)


def with_notice(text: str, talk: PromptConversation) -> str:
    """Return a refusal with the notice on who answers, which a conversation shows once."""
    said = (item.fields.get("message", item.text) for item in talk.messages)
    return text if any(CONNECT in earlier for earlier in said) else f"{text}\n\n{CONNECT}"


def missing_file(request: str, world: World) -> str:
    """Return the answer to a request for a file that is not there; empty if all are."""
    for mention in find_files(request, world.files):
        if not mention.file:
            name = request[mention.start : mention.end].strip("`'\"«»„“”「」 ")
            nearest = nearest_file(name, world.files)
            known = naming([file.name for file in world.files]) if world.files else ""
            hint = f"Did you mean `{nearest}`?" if nearest else known
            return " ".join(filter(None, [f"There is no file `{_shown(name)}`.", hint, _ADD]))
    return ""


def about_answer(about: About, world: World) -> str:
    """Return the description of tables, with numbered questions that can be asked of them."""
    parts = [in_prose(world.tables[id]) for id in about.tables[:_MOST_TABLES]]
    if len(about.tables) > _MOST_TABLES:
        parts.append(f"{len(about.tables) - _MOST_TABLES} more tables are not described here.")
    if about.questions:
        asked = [f"{place}. {one.text}" for place, one in enumerate(about.questions, start=1)]
        parts.append("\n".join(["You could ask one of these, by its number:", "", *asked]))
    parts.append("Ask about any of its columns.")
    return "\n\n".join(parts)


def files_answer(request: str, files: Sequence[FileInfo], unlisted: int = 0) -> str:
    """Return the answer to a question for the files: their number, or a list with columns."""
    if not files:
        return NO_FILES
    names = ", ".join(f"`{file.name}`" for file in files[:MOST_LISTED])
    number = len(files) + unlisted
    more = number - len(files[:MOST_LISTED])
    lead = f"There {'is' if number == 1 else 'are'} {counted(number, 'file')}"
    if _COUNT.search(request):
        return f"{lead}: {names}{f' and {more:,} more' if more else ''}."
    lines = [
        f"{place}. {line}" if at == 0 else f"   {line}"
        for place, file in enumerate(files[:MOST_LISTED], start=1)
        for at, line in enumerate(_file_lines(file))
    ]
    if more:
        lines.append(f"\nThere are {more:,} more.")
    return "\n".join([f"{lead}:", "", *lines, "", "Describe one by its number."])


def _columns(table: TableProfile) -> str:
    names = [f"`{_shown(column.name)}`" for column in table.columns[:_MOST_COLUMNS]]
    more = ", ..." if len(table.columns) > _MOST_COLUMNS else ""
    return f"The columns of `{table.id.file}` are {', '.join(names)}{more}."


def _file_lines(file: FileInfo) -> list[str]:
    if not file.parts:
        return [f"`{file.name}`"]
    lines = []
    for part in file.parts:
        name = f"`{file.name}`, table `{part.name}`" if part.name else f"`{file.name}`"
        rows = "" if part.rows is None else f" ({counted(part.rows, 'row')})"
        columns = ", ".join(f"`{column}`" for column in part.columns[:_MOST_COLUMNS])
        more = len(part.columns) - _MOST_COLUMNS
        lines.append(f"{name}{rows}: {columns}" + (f" and {more} more" if more > 0 else ""))
    return lines


def failure(report: str, goal: str) -> str:
    """Return the answer after a step that failed, with the reason in one line."""
    if not section(report, "Execution"):
        return _with_hint(shorten(report, 2000))
    error = unfenced(section(report, "Error")) or "no reason was given"
    return _with_hint(f"I could not do this: {goal}\n\nThe code failed with: {reason(error)}")


def reason(error: str) -> str:
    """Return the line of an error that states the cause."""
    lines = [
        line for line in error.strip().splitlines() if not line.startswith("The Python session")
    ]
    return lines[-1] if lines else "the code failed"


def _with_hint(text: str) -> str:
    is_missing = "No such file" in text or "unable to open database" in text
    return f"{text}\n\n{_ADD}" if is_missing else text


def _quoted(words: Sequence[str]) -> str:
    shown = [f"`{_shown(word)}`" for word in dict.fromkeys(words)]
    more = len(shown) - _MOST_WORDS
    return ", ".join(shown[:_MOST_WORDS]) + (f" and {more} more words" if more > 0 else "")


def _shown(word: str) -> str:
    """Return a word of the user's in one line, bounded, without back quotes."""
    line = " ".join(word.replace("`", "").split())
    return line if len(line) <= _WORD_CHARS else f"{line[: _WORD_CHARS - 3]}..."


_ATTEMPT = re.compile(r"^Attempt (?P<id>n\d+): (?P<origin>.+)\.\Z", re.MULTILINE)
_PLAN_CHARS, _REPORT_CHARS = 600, 1_500
_MOST_EARLIER = 8
_MODEL = (
    "This stands in the attempt's conversation. I am the built-in offline analyst: rules, not a"
    " language model. I can also list its files (`list the files`) and compute over tables."
    f" Other questions need a real model: {_HOW}"
)


def attempt_text(messages: Sequence[PromptMessage]) -> str:
    """Return plan, result and files of the newest attempt, and the way to it; empty for none."""
    starts = [at for at, item in enumerate(messages) if item.sender in {"User", ""}]
    rounds = [
        messages[at:end] for at, end in zip(starts, [*starts[1:], len(messages)], strict=True)
    ]
    attempts = [(match, round_) for round_ in rounds if (match := _ATTEMPT.search(round_[0].text))]
    if not attempts:
        return ""
    match, last = attempts[-1]
    parts = [f"{match['id']} is an attempt of a search: {match['origin']}."]
    parts += [f"Its plan: {_plan(last)}", f"What came of it: {_outcome(last)}"]
    reports = [item.text for item in last if item.sender not in {"User", "", "me"}]
    parts += [fenced(shorten(report.strip(), _REPORT_CHARS), "text") for report in reports[-1:]]
    earlier = [
        f"- {match['id']} ({match['origin']}): {_plan(round_)} {_outcome(round_)}"
        for match, round_ in attempts[:-1]
    ]
    if earlier:
        parts.append("\n".join(["The way to it:", *earlier[-_MOST_EARLIER:]]))
    return "\n\n".join([*parts, _MODEL])


def _plan(round_: Sequence[PromptMessage]) -> str:
    plans = (item.fields.get("plan", "") for item in round_)
    return shorten(" ".join(next(filter(None, plans), "none is known.").split()), _PLAN_CHARS)


def _outcome(round_: Sequence[PromptMessage]) -> str:
    last = [item for item in round_ if item.fields.get("send_to") == "User"]
    return last[-1].fields.get("message", "").strip() if last else "it did not end."
