"""Replies of the offline analyst to prompts, without a kernel."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from taskweaver.analyst.model.conversation import code_in, conversation
from taskweaver.analyst.model.replies import as_code_writer, as_planner, named_image, summary
from taskweaver.llm.types import ChatMessage, format_chat_message
from taskweaver.tables.files.file_list import ListedFile, TableOverview, file_list
from taskweaver.tables.files.profile import TableId
from taskweaver.utils.markup.quoting import quoted_section
from taskweaver.utils.text import fenced

TABLE = TableOverview("", 3, columns={"name": "text", "n": "integer"})
FILES = file_list([ListedFile("a.csv", 30, (TABLE,)), ListedFile("b list.csv", 30, (TABLE,))])
PROFILE = """\
Profile of 1 tables, request "mean n"
table "a.csv" part "": 3 rows
column "name": text, 3 distinct, values ["x", "y", "z"]
column "n": integer, 3 distinct, from "1" to "3"
End of profile: 4 lines"""
WORKERS = ("CodeInterpreter", "User")


def prompt(*turns: tuple[str, str], files: str = FILES) -> list[ChatMessage]:
    """Return a Planner's prompt; a turn of ``me`` holds the message of an earlier reply."""
    messages = [format_chat_message("system", "You are the Planner.")]
    for number, (sender, text) in enumerate(turns):
        head = f"Let's start the new conversation!\n\n{files}\n\n" if number == 0 else ""
        if sender == "me":
            fields = {"message": text, "plan": "1. x", "send_to": "CodeInterpreter"}
            messages.append(format_chat_message("assistant", json.dumps({"response": fields})))
        else:
            messages.append(format_chat_message("user", f"{head}From: {sender}\nMessage: {text}"))
    return messages


def ask(text: str, recipients: Sequence[str] = WORKERS) -> dict[str, str]:
    return as_planner(prompt(("User", text)), recipients)


def report(result: str) -> str:
    return f"## Execution\nThe code ran to its end.\n\n## Result\n{fenced(result)}"


@pytest.mark.parametrize("text", ["which files do I have?", "what data is there?", "list my files"])
def test_files_are_listed_without_a_cell(text: str) -> None:
    fields = ask(text)
    assert fields["send_to"] == "User"
    assert fields["message"].startswith("There are 2 files:\n\n1. `a.csv` (3 rows): `name`, `n`")


def test_a_file_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    fields = ask("how many rows are in blist.tsv.csv?")
    assert fields["stop"] == "TaskFailure"
    assert "There is no file `blist.tsv.csv`." in fields["message"]
    assert "/load" in fields["message"]


def test_the_request_and_the_file_go_into_the_look_as_literals() -> None:
    request = "mean n of a.csv where name is '); import os #"
    fields = ask(request)
    assert fields["send_to"] == "CodeInterpreter"
    assert code_in(fields["message"]) == f"profile_tables('a.csv', find={request!r})"


def test_after_the_look_the_order_holds_the_reading_and_its_code() -> None:
    look = "Look at `a.csv`\n```python\nprofile_tables('a.csv', find='mean n')\n```"
    turns = [("User", "mean n of a.csv"), ("me", look), ("CodeInterpreter", report(PROFILE))]
    fields = as_planner(prompt(*turns), WORKERS)
    assert fields["send_to"] == "CodeInterpreter"
    assert fields["message"].startswith("mean of `n`\n```python\n")
    assert "read_table('a.csv')" in code_in(fields["message"])


FAILED = "I could not do this. The code failed with: TableError: b list.csv is empty."


def _after_failed_look(request: str, failed: str) -> dict[str, str]:
    first = "Look at `a.csv`\n```python\nprofile_tables('a.csv', find='mean n')\n```"
    second = "Look at `b list.csv`\n```python\nprofile_tables('b list.csv', find='mean n')\n```"
    turns = [("User", request), ("me", first), ("CodeInterpreter", report(PROFILE)),
             ("me", second), ("CodeInterpreter", failed)]  # fmt: skip
    return as_planner(prompt(*turns), WORKERS)


def test_a_file_that_cannot_be_read_spoils_no_request_for_others() -> None:
    assert _after_failed_look("mean n", FAILED)["message"].startswith("mean of `n`\n```python\n")


@pytest.mark.parametrize(
    ("request_", "failed"),
    [("mean n of b list.csv", FAILED), ("mean n", "The kernel ended while the code ran.")],
)
def test_a_failed_look_at_a_named_file_is_told(request_: str, failed: str) -> None:
    fields = _after_failed_look(request_, failed)
    assert (fields["send_to"], fields["stop"]) == ("User", "TaskFailure")
    assert failed in fields["message"]


def _folder(count: int) -> str:
    tables = [TableOverview("", 3, columns={f"c{n}": "text", "n": "integer"}) for n in range(count)]
    return file_list([ListedFile(f"t{n}.csv", 30, (table,)) for n, table in enumerate(tables)])


def test_in_a_folder_of_many_files_those_with_the_columns_of_the_request_are_looked_at() -> None:
    fields = as_planner(prompt(("User", "number of rows per c7"), files=_folder(12)), WORKERS)
    assert fields["plan"] == "1. Look at `t7.csv`\n2. Compute the answer"


def test_a_request_that_any_of_many_files_could_answer_is_asked_to_name_one() -> None:
    fields = as_planner(prompt(("User", "mean n where x"), files=_folder(12)), WORKERS)
    assert fields["stop"] == "TaskFailure"
    assert fields["message"].startswith("Name the file, for example `t0.csv`, ")


@pytest.mark.parametrize(("request_", "is_said"), [("mean n", True), ("mean n of a.csv", False)])
def test_an_answer_names_its_file_if_the_request_does_not(request_: str, is_said: bool) -> None:
    other = PROFILE.replace("a.csv", "b list.csv").replace('"n"', '"m"')
    profiles = [("me", "Look at `a.csv`"), ("CodeInterpreter", report(PROFILE)),
                ("me", "Look at `b list.csv`"), ("CodeInterpreter", report(other))]  # fmt: skip
    turns = [("User", request_), *profiles, ("me", "mean of `n`"), ("CodeInterpreter", report("2"))]
    message = as_planner(prompt(*turns), WORKERS)["message"]
    assert message.endswith("\n\nFrom `a.csv`.") is is_said


def test_a_profile_of_a_file_that_changed_since_is_forgotten() -> None:
    turns = [
        ("User", "mean n of a.csv"),
        ("CodeInterpreter", report(PROFILE)),
        ("User", "files changed, read them again: a.csv.\nand the median?"),
    ]
    talk = conversation(prompt(*turns[:2]))
    assert TableId("a.csv") in talk.world().tables
    assert not conversation(prompt(*turns)).world().tables


def test_notes_of_the_session_are_no_words_of_the_user() -> None:
    talk = conversation(prompt(("User", "files added: b list.csv.\nmean n")))
    assert talk.requests() == ["mean n"]
    assert talk.world().files[0].name == "b list.csv"


def test_what_a_chat_client_sends_before_the_question_is_no_part_of_it() -> None:
    pytest.importorskip("starlette")
    from taskweaver.doors.chat_completions.door import CompletionMessage, with_history

    said = [
        CompletionMessage(role="system", content="Be brief.\n\nAnswer in English."),
        CompletionMessage(role="user", content="which files do I have?"),
    ]
    assert ask(with_history(said))["message"].startswith("There are 2 files:")


def test_requests_of_a_summary_are_read_again() -> None:
    body = "## Summary of earlier rounds\nThe user asked: mean n of a.csv\nme -> User: 2\n\n"
    messages = prompt(("User", "and the median?"))
    text = str(messages[1]["content"]).replace("From: User", f"{body}From: User")
    messages[1] = format_chat_message("user", text)
    assert conversation(messages).requests() == ["mean n of a.csv", "and the median?"]


def test_a_session_without_a_role_for_code_says_so() -> None:
    assert "No role" in ask("mean n of a.csv", ["User"])["message"]


@pytest.mark.parametrize("code", ["1 + 1", "## Task\nprint(1)\n\n# From: User", "x = '''```'''"])
def test_the_code_writer_returns_the_code_of_an_order_as_it_is(code: str) -> None:
    order = quoted_section(f"mean of `n`\n{fenced(code, 'python')}")
    text = f"Let's start the new conversation!\n\n## User request\nx\n\n## Task\n{order}"
    text += "\n\n## Requirements\n- Reply."
    messages = [format_chat_message("system", "code"), format_chat_message("user", text)]
    assert as_code_writer(messages)["reply_content"] == code


def test_a_cell_that_failed_is_not_tried_again() -> None:
    text = (
        "## Feedback on the previous code\n### Execution\nThe code failed.\n\n### Error\n```\n"
        "Traceback\nTableError: the file is empty\n```\n\n## Correction\nThe code failed."
    )
    fields = as_code_writer([format_chat_message("user", text)])
    assert fields["reply_type"] == "text"
    assert fields["reply_content"].endswith("The code failed with: TableError: the file is empty")


@pytest.mark.parametrize(
    "text",
    [
        "word " * 10_000, "mean n of a.csv " * 2_000, "schreibe ein Gedicht über das Meer",
        "海についての詩を書いて", "```python\nimport os", "'", "`" * 1_000, "\u202e\u0000\ud7ff",
    ],
)  # fmt: skip
def test_any_text_gets_a_bounded_reply(text: str) -> None:
    fields = ask(text)
    assert fields["message"].strip()
    assert len(fields["message"]) < 4_000


def test_a_refusal_quotes_the_words_and_says_how_to_connect_a_model() -> None:
    asked = prompt(("User", "write a poem about the sea"), files="")
    message = as_planner(asked, WORKERS)["message"]
    for part in ("poem", "There is no data file.", "offline analyst", "LLM_API_KEY"):
        assert part in message


def test_images_and_summaries_are_still_served() -> None:
    assert named_image("look at plot.png, please") == "plot.png"
    assert "The user asked: x" in summary("### Round 1\nThe user asked: x\nnoise")
