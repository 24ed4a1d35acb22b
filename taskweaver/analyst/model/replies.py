"""The offline analyst's replies: as Planner, as code writer, as summariser. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from taskweaver.analyst.code.cell import as_code, merged_note
from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.likely_files import naming
from taskweaver.analyst.model.conversation import (
    PromptConversation,
    PromptMessage,
    artifacts,
    code_in,
    conversation,
    has_run,
    holds_no_table,
    section,
    unfenced,
    without_notes,
)
from taskweaver.analyst.model.refusals import (
    NO_FILES,
    TALK,
    about_answer,
    attempt_text,
    failure,
    files_answer,
    missing_file,
    reason,
    refusal,
    with_notice,
)
from taskweaver.analyst.reader import MOST_LOOKS
from taskweaver.analyst.readings import (
    About,
    Calculation,
    FileListing,
    Help,
    NeedsLook,
    NotUnderstood,
    Outcome,
    Python,
    Reading,
    Rows,
    Saved,
    Summary,
    TableView,
    Unclear,
    Understood,
)
from taskweaver.analyst.wording.answers import answer, read_printed, unused_note
from taskweaver.analyst.wording.requests import in_words
from taskweaver.analyst.wordings import file_to_save
from taskweaver.llm.types import ChatMessage
from taskweaver.memory.suggestions import Suggestion, Suggestions
from taskweaver.tables.files.mentions import find_files
from taskweaver.tables.files.profile import World
from taskweaver.utils.text import counted, fenced, shorten

_IMAGE = re.compile(r"https?://\S+|[^\s'\"`(]+\.(?:png|jpe?g|gif|webp)\b", re.IGNORECASE)
_DOUBT = re.compile(r"^Not certain: (.*)$", re.MULTILINE)
_SUMMARY_CHARS = 3_000
_REQUEST_CHARS, _FOUND_CHARS = 2_000, 1_900
_MOST_REPLAYED = 30
"""Messages of the user that are read again for each prompt: a follow-up refers to the last ones."""
_LOOK = "Look at "
_FIRST = "I look at the columns and values first. Ask again for the answer."
_COMPUTE = "Compute the answer"
_LOAD = re.compile(r"\W*(?:(?:please|can you|load|open|read|use|import)\W+)*", re.IGNORECASE)
REMEMBER = "remember"
_FACT_HEAD = (
    r"(?:please |bitte )?(?:remember|note|keep in mind|don't forget|merke? dir|vergiss nicht)"
    r"(?: that|,? dass)?[:,]? "
)
_FACT = re.compile(rf"{_FACT_HEAD}([^?]*\w[^?]*)", re.IGNORECASE)
_FACT_FIRST = re.compile(
    rf"{_FACT_HEAD}(?P<fact>[^?]*?\w)[.!;]\s+(?P<request>\S.*)", re.IGNORECASE | re.DOTALL
)
_OF_TABLES = (Summary, Rows, TableView)
_NAMES_NO_FILE = (Python, Calculation, Help, FileListing, About)


def as_planner(
    messages: Sequence[ChatMessage], recipients: Sequence[str], *, keeps_facts: bool = False
) -> dict[str, str]:
    """Return the fields of a Planner's reply; with `keeps_facts` it may have `REMEMBER`."""
    talk = conversation(messages)
    workers = [name for name in recipients if name != "User"]
    worker = "CodeInterpreter" if "CodeInterpreter" in workers else next(iter(workers), "")
    said = talk.newest.request if keeps_facts and talk.newest.sender == "User" else ""
    first = _FACT_FIRST.fullmatch(said)
    if first and not isinstance(read(talk)[2], NotUnderstood):
        return _next_step(talk, worker) | {REMEMBER: first["fact"]}
    if fact := _FACT.fullmatch(said):
        text = f"I keep in mind: {fact[1]}"
        return _to_user(text, "Completed", "the user states a fact") | {REMEMBER: fact[1]}
    if talk.newest.sender not in workers:
        return _next_step(talk, worker)
    fields = _after_report(talk, worker)
    plans = [item.fields["plan"] for item in talk.round if "plan" in item.fields]
    if fields["send_to"] == "User" and plans:
        fields |= {"plan": plans[-1], "current_plan_step": plans[-1].splitlines()[-1]}
    return fields


def read(talk: PromptConversation, world: World | None = None) -> tuple[str, World, Outcome]:
    """Return the user's newest request, the world it is about, and its outcome.

    Args:
        talk: The conversation.
        world: The world, if it is another one than that of the conversation.
    """
    world, dialogue = world or talk.world(), Dialogue()
    request = ""
    outcome: Outcome = NotUnderstood(())
    requests = talk.requests_with_files()[-_MOST_REPLAYED:]
    requests = [(_without_fact(request), given) for request, given in requests]
    for place, (request, given) in enumerate(requests, start=1):
        spelled_out = request if dialogue.pending else _spelled_out(request, world)
        now = replace(world, given=given)
        after, outcome = dialogue.say(spelled_out, now)
        if isinstance(outcome, NeedsLook) and place < len(requests):
            if lost := _lost(talk, outcome):
                texts = [text for text, _ in requests[place:]]
                find = shorten("\n".join([*reversed(texts), outcome.find]), _FOUND_CHARS)
                return texts[-1], world, NeedsLook(lost, find)
            # Files that came later, as results do, were no part of an earlier request.
            looked = {id.file for id in world.tables}
            then = replace(now, files=tuple(file for file in now.files if file.name in looked))
            after, outcome = dialogue.say(spelled_out, then)
            after = replace(after, refused=None)  # it may have had its answer
        dialogue = after
    needs_none = isinstance(outcome, Understood) and isinstance(outcome.reading, _NAMES_NO_FILE)
    is_about_files = not needs_none and not file_to_save(request)
    missing = talk.round[0].refused or missing_file(request, world) if is_about_files else ""
    if isinstance(outcome, NotUnderstood) and not world.files:
        missing = missing or NO_FILES
    words = outcome.words if isinstance(outcome, NotUnderstood) else ()
    words = tuple(word for word in words if word not in missing)
    return request, world, NotUnderstood(words, reason=missing) if missing else outcome


def _without_fact(request: str) -> str:
    """Return a request without the fact that it states first."""
    first = _FACT_FIRST.fullmatch(request)
    return first["request"] if first else request


def _lost(talk: PromptConversation, look: NeedsLook) -> tuple[str, ...]:
    """Return the files of an earlier request whose profile is cut short by now.

    Long outcomes of earlier rounds are shortened, and a profile with a gap is none.
    """
    before = "\n".join(_orders(talk.messages[: -len(talk.round)]))
    now = "\n".join(_orders(talk.round))
    looks = {file: f"{_LOOK}`{file}`" for file in look.files}
    return tuple(file for file, order in looks.items() if order in before and order not in now)


def _spelled_out(request: str, world: World) -> str:
    """Return the request that ``load x.csv`` stands for: a look at the columns."""
    mentions = find_files(request, world.files)
    if len(mentions) != 1 or not mentions[0].file:
        return request
    mention = mentions[0]
    rest = f"{request[: mention.start]} {request[mention.end :]}"
    if not _LOAD.fullmatch(rest):
        return request
    part = f" table {mention.part}" if mention.part else ""
    return f"columns of `{mention.file}`{part}"


def _next_step(talk: PromptConversation, worker: str) -> dict[str, str]:
    request, world, outcome = read(talk)
    attempt = attempt_text(talk.messages) if isinstance(outcome, NotUnderstood | Unclear) else ""
    if attempt:
        return _to_user(attempt, "Completed", "the user asks about an attempt of a search")
    match outcome:
        case Unclear(question, options=options):
            fields = _to_user(question, "Clarification", "the request has several readings")
            return _offering(fields, Suggestions(tuple(map(Suggestion, options))))
        case NotUnderstood():
            read_as = _DOUBT.findall("\n".join(item.text for item in talk.messages))
            text = refusal(outcome, world, list(dict.fromkeys(read_as)))
            fields = _to_user(with_notice(text, talk), "TaskFailure", "the request has no reading")
            return _offering(fields, Suggestions((outcome.nearest,) if outcome.nearest else ()))
        case NeedsLook(files, find):
            return _look(talk, worker, find or request, world, files)
        case Understood(reading):
            return _compute(talk, worker, request, world, reading)
    raise AssertionError("every outcome is handled")


def _compute(
    talk: PromptConversation, worker: str, request: str, world: World, reading: Reading
) -> dict[str, str]:
    """Return the order for the cell of a reading, or the answer if none is needed."""
    text = _without_code(talk, request, world, reading)
    if text:
        fields = _to_user(text, "Completed", "what is known of the files answers the request")
        offers = reading.questions if isinstance(reading, About) else ()
        return _offering(fields, Suggestions(offers))
    goal = in_words(reading)
    order = f"{goal}\n{fenced(as_code(reading, world.tables), 'python')}"
    looks = [step.partition("\n")[0] for step in _orders(talk.round) if step.startswith(_LOOK)]
    steps = [*looks, _COMPUTE]
    return _order(worker, order, steps, "One cell computes this.", step=len(steps))


def _without_code(talk: PromptConversation, request: str, world: World, reading: Reading) -> str:
    """Return the answer of a reading that needs no cell; empty for others."""
    match reading:
        case Help(topic):
            return TALK[topic]
        case About():
            return about_answer(reading, world)
        case FileListing(names):
            by_number = sorted(talk.files, key=lambda file: file.name not in names)
            return files_answer(request, by_number, talk.unlisted)
    return ""


def _look(
    talk: PromptConversation, worker: str, request: str, world: World, files: Sequence[str]
) -> dict[str, str]:
    """Order a look at the first of some files that was not looked at in this round."""
    if len(request) > _REQUEST_CHARS:
        text = (
            f"A request about tables may have {_REQUEST_CHARS:,} characters, and this one has"
            f" {len(request):,}. Ask a shorter question, or send the code behind `run this code:`."
        )
        return _to_user(with_notice(text, talk), "TaskFailure", "the request is too long")
    done = _orders(talk.round)
    if sum(order.startswith(_LOOK) for order in done) + len(files) > MOST_LOOKS:
        text = with_notice(naming(files), talk)
        return _to_user(text, "TaskFailure", "many files may be meant")
    orders = {file: _look_order(file, request, world) for file in files}
    file = next((file for file, order in orders.items() if order not in done), "")
    if not file:
        names = ", ".join(f"`{name}`" for name in files)
        text = f"I looked at {names} and could not read the tables."
        return _to_user(with_notice(text, talk), "TaskFailure", "the looks did not help")
    steps = [*(order.partition("\n")[0] for order in orders.values()), _COMPUTE]
    at = list(orders).index(file)
    why = f"I need the columns and values of `{file}`."
    return _order(worker, orders[file], steps, why, step=at + 1)


def _look_order(file: str, request: str, world: World) -> str:
    return f"{_LOOK}`{file}`\n{fenced(look_code(file, request, world), 'python')}"


def look_code(file: str, request: str, world: World) -> str:
    """Return the cell that looks at a file for the words of a request; at new columns too."""
    is_known = any(id.file == file for id in world.tables)
    return f"profile_tables({file!r}, find={request!r}{', matches_only=True' * is_known})"


def _orders(messages: Sequence[PromptMessage]) -> list[str]:
    """Return the orders of messages."""
    return [item.fields.get("message", "") for item in messages if item.sender == "me"]


def _after_report(talk: PromptConversation, worker: str) -> dict[str, str]:
    report, orders = talk.newest.text, _orders(talk.round)
    order = orders[-1] if orders else ""
    goal = order.partition("\n")[0]
    is_look = order.startswith(_LOOK)
    if not has_run(report) and not (is_look and holds_no_table(report) and _is_optional(talk)):
        return _to_user(failure(report, goal), "TaskFailure", "the step failed")
    if is_look:
        return _next_step(talk, worker)
    request, world, outcome = read(talk)
    output, result = (unfenced(section(report, title)) for title in ("Output", "Result"))
    if isinstance(outcome, Understood):
        if isinstance(outcome.reading, Saved):
            outcome = replace(outcome, reading=outcome.reading.of)
        text = answer(outcome, output, result, artifacts(report))
        notes = [*outcome.notes, *unused_note(outcome)]
        more = [merged_note(order, world.tables), _origin(request, world, outcome.reading)]
        text = "\n\n".join(filter(None, [text, *more]))
        notes += filter(None, more)
    else:  # the look before it was summarised meanwhile: the result stands for itself
        text, notes = _plain_answer(goal, output, result, artifacts(report)), []
    fields = _to_user(text, "Completed", "the result answers the request")
    return _offering(fields, Suggestions(notes=tuple(notes)))


def _is_optional(talk: PromptConversation) -> bool:
    """Return whether the user's newest request names no file: one without a table is passed by."""
    mentions = find_files(talk.requests()[-1], talk.world().files)
    return not any(mention.is_certain for mention in mentions)


def _origin(request: str, world: World, reading: Reading) -> str:
    """Return the line that names the file of an answer, if others could have been meant."""
    files = {id.file for id in reading.source.tables} if isinstance(reading, _OF_TABLES) else set()
    others = [file for file in world.files if file.name not in files]
    named = {mention.file for mention in find_files(request, world.files)}
    if not files or not others or files <= named:
        return ""
    return f"From {' and '.join(f'`{name}`' for name in sorted(files))}."


def _plain_answer(goal: str, output: str, result: str, saved: Sequence[str]) -> str:
    """Return the answer of a cell whose reading is known in words alone."""
    printed = read_printed(output)
    rows = " and ".join(counted(count, "row") for count in printed.rows)
    heading = f"{goal[:1].upper()}{goal[1:]}{f' ({rows})' if rows else ''}"
    bodies = [fenced(part) for part in (result, "\n".join(printed.others)) if part.strip()]
    ends = [f"Saved: {', '.join(f'`{name}`' for name in saved)}"] if saved else []
    return "\n\n".join([heading, *bodies, *ends])


def _order(worker: str, order: str, steps: Sequence[str], why: str, *, step: int) -> dict[str, str]:
    plan = [f"{number}. {text}" for number, text in enumerate(steps, start=1)]
    if not worker:
        text = "No role of this session runs code, so nothing can be computed."
        return _to_user(text, "TaskFailure", "there is no worker")
    return {
        "plan_reasoning": why,
        "plan": "\n".join(plan),
        "current_plan_step": plan[step - 1],
        "stop": "InProcess",
        "send_to": worker,
        "message": order,
    }


def _to_user(message: str, stop: str, why: str) -> dict[str, str]:
    return {
        "plan_reasoning": why,
        "plan": "",
        "current_plan_step": "",
        "stop": stop,
        "send_to": "User",
        "message": message,
    }


def _offering(fields: dict[str, str], offers: Suggestions) -> dict[str, str]:
    """Return the fields of an answer with what it offers."""
    return fields | {"suggestions": json.dumps(offers.extra())} if offers else fields


def as_code_writer(messages: Sequence[ChatMessage]) -> dict[str, str]:
    """Return the fields of a code writer's reply."""
    talk = conversation(messages)
    newest = talk.newest.text
    if section(newest, "Correction"):
        return failed(newest)
    code = code_in(section(newest, "Task")) if section(newest, "User request") else ""
    if code:
        return _code(code, "")
    return _own_words(talk)


def failed(newest: str) -> dict[str, str]:
    """Return the reply after a cell that failed or was refused: it is not tried again."""
    error = unfenced(section(newest, "Error"))
    if not error:
        why = section(newest, "Correction").partition("\n")[0]
        return _words(f"I could not do this. {why}")
    return _words(f"I could not do this. The code failed with: {reason(error)}")


def _own_words(talk: PromptConversation) -> dict[str, str]:
    """Answer a user, or another model, who speaks to the code writer in words."""
    request, world, outcome = read(talk)
    match outcome:
        case Unclear(question):
            return _words(question)
        case NotUnderstood():
            return _words(with_notice(refusal(outcome, world), talk))
        case NeedsLook(files, find):
            look = look_code(files[0], find or request, world)
            return _by_columns(talk, world) or _code(look, _FIRST)
        case Understood(reading):
            text = _without_code(talk, request, world, reading)
            return (
                _words(text) if text else _code(as_code(reading, world.tables), in_words(reading))
            )
    raise AssertionError("every outcome is handled")


def _by_columns(talk: PromptConversation, world: World) -> dict[str, str] | None:
    """Return the cell of a request whose words are columns and numbers alone; None for others.

    The list of files has the kinds of the columns, so that no look is needed.
    """
    searched = frozenset(talk.requests())
    tables = {**talk.listed, **world.tables}
    known = replace(
        world, tables={id: replace(table, searched=searched) for id, table in tables.items()}
    )
    _, _, outcome = read(talk, known)
    if not isinstance(outcome, Understood) or outcome.unused or outcome.notes:
        return None
    return _code(as_code(outcome.reading, known.tables), in_words(outcome.reading))


def _code(code: str, thought: str) -> dict[str, str]:
    return {"thought": thought, "reply_type": "python", "reply_content": code}


def _words(text: str) -> dict[str, str]:
    return {"thought": "There is no code to run.", "reply_type": "text", "reply_content": text}


def named_image(text: str) -> str:
    """Return the first address or file name of an image in a text; empty for none."""
    match = _IMAGE.search(text)
    return match[0].rstrip(".,;:!?)'\"`") if match else ""


def summary(text: str) -> str:
    """Return an extract of a conversation: requests, first lines of messages, errors."""
    wanted = re.compile(r"^(?:---|the user asked|.*->|.*error|.*saved|- |#)", re.I)
    text = without_notes(text)
    lines = [line.strip() for line in text.splitlines() if wanted.match(line.strip())]
    return shorten("\n".join(lines) or text, _SUMMARY_CHARS)
