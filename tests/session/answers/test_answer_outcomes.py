"""The texts of a conversation that support a number, and the place of a number in them."""

from __future__ import annotations

import json

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.cells import executed_cells
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Evidence, Round, RoundAnswer
from taskweaver.role.situation import Situations
from taskweaver.session.answers.check import AnswerCheck, verify
from taskweaver.session.answers.outcomes import Outcomes

REPORT = """### Execution
The code ran to its end.

### Result
```
Region  Count
North    57.13
South    12.5
```

### Output
```
rows 2956
```"""


def report(
    text: str = REPORT, code: str = "limit = 3.75  # 99.25", *, is_success: bool = True
) -> Post:
    contents = {
        AttachmentType.reply_type: "python",
        AttachmentType.reply_content: code,
        AttachmentType.execution_status: "SUCCESS" if is_success else "FAILURE",
        AttachmentType.execution_result: text,
        AttachmentType.session_variables: json.dumps([["table", "DataFrame 3000x18: Date"]]),
    }
    attachments = [Attachment.create(kind, content) for kind, content in contents.items()]
    return Post.create("done", "CodeInterpreter", "Planner", attachments)


def conversation(*posts: Post) -> list[Round]:
    return [Round.create("is it over 64.5?", state="finished", post_list=list(posts))]


def places(answer: str, *posts: Post) -> list[tuple[int, str, int, str]]:
    rounds = conversation(*posts)
    found = verify(answer, Outcomes().sources(rounds, "Planner"))
    return [(item.cell, item.where, item.line, item.original) for item in found.evidence]


def test_each_number_has_its_place() -> None:
    asked = Post.create("is it over 64.5?", "User", "Planner")
    cell = report()
    answer = "57.1, 12.5, 2,956 of 3,000 rows, limit 3.75, asked 64.5"
    assert places(answer, asked, cell) == [
        (1, "Result", 2, "North    57.13"),
        (1, "Result", 3, "South    12.5"),
        (1, "Output", 1, "rows 2956"),
        (1, "Variables", 1, "table: DataFrame 3000x18: Date"),
        (1, "Code", 1, "limit = 3.75"),
        (0, "message", 1, "is it over 64.5?"),
    ]


def test_the_newest_outcome_comes_first_and_code_last() -> None:
    older, newer = report(), report("### Result\n```\n57.1\n3.75\n```")
    assert [place[:2] for place in places("57.1 and 3.75", older, newer)] == [
        (2, "Result"), (2, "Result"),
    ]  # fmt: skip


def test_old_outcomes_are_found_in_a_long_conversation() -> None:
    oldest = report("### Result\n```\n-777.25 0.125\n```")
    posts = [oldest, *(report() for _ in range(30))]
    assert [place[0] for place in places("777.3, −777.3, 12.5 %, 777.4, +777.3", *posts)] == [  # noqa: RUF001
        1, 1, 31,
    ]  # fmt: skip


def test_a_check_finds_outcomes_of_all_rounds_and_reads_each_once() -> None:
    memory = Memory("s")
    check = AnswerCheck(memory, "Planner", 20, Situations())
    for number in range(20):
        round_ = memory.create_round("go")
        memory.add_post(round_, report(f"### Result\n```\n{number}.125 x\n```"))
        answer = Post.create(f"{number}.125, 0.125 and 4711.5", "Planner", "User")
        assert check.doubts(answer) == ["4711.5"]
        assert check.mark(answer) == ("4711.5",)
        memory.add_post(round_, answer)
        for post in round_.post_list:  # not read again
            post.attachment_list = [
                item for item in post.attachment_list
                if item.type is not AttachmentType.execution_result
            ]  # fmt: skip
    cells = [found.cell for found in round_.answer.evidence]
    assert cells == [20, 1]


def test_words_of_models_and_comments_support_nothing_but_reports_of_other_roles_do() -> None:
    posts = [
        Post.create("I guess 81.5", "Planner", "CodeInterpreter"),
        Post.create("81.5", "Planner", "User"),
        Post.create("81.5", "CodeInterpreter", "Planner",
                    [Attachment.create(AttachmentType.reply_type, "text")]),
        report(code="x = 81.5", is_success=False),
    ]  # fmt: skip
    assert places("81.5 and 99.25", *posts, report()) == []
    found = Post.create("The page says 81.5 million.", "WebSearch", "Planner")
    assert places("81.5 million", found) == [(0, "message", 1, "The page says 81.5 million.")]


def test_cells_are_numbered_with_those_that_failed() -> None:
    rounds = conversation(report(is_success=False), Post.create("x", "User"), report())
    cells = executed_cells(rounds)
    assert [(cell.number, cell.is_success) for cell in cells] == [(1, False), (2, True)]
    assert cells[1].variables == (("table", "DataFrame 3000x18: Date"),)
    post = report()  # with variables that cannot be read
    post.get_attachment(AttachmentType.session_variables)[0].content = "[[1"
    assert executed_cells(conversation(post))[0].variables == ()


def test_an_answer_survives_its_stored_form_and_a_round_may_have_none() -> None:
    answer = Post.create("57.1 of 4711", "Planner", "User")
    memory = Memory("s")
    round_ = memory.create_round("go")
    memory.add_post(round_, report())
    assert AnswerCheck(memory, "Planner", 20, Situations()).mark(answer) == ("4711",)
    memory.add_post(round_, answer)
    again = Round.from_dict(json.loads(json.dumps(round_.to_dict())))
    assert again.answer == round_.answer
    assert again.answer.unsupported_numbers == ("4711",)
    assert again.answer.evidence[0].original == "North    57.13"

    assert Round.create("x").answer == RoundAnswer("")
    note = Post.create("do it again", "Planner", "Planner")
    assert Round.create("x", post_list=[note]).answer.text == ""
    answer = Post.create("hello", "Planner", "User")
    assert Round.create("x", state="failed", post_list=[answer]).answer.text == ""
    assert Round.create("x", state="finished", post_list=[answer]).answer.text == "hello"


def test_a_finding_that_is_not_readable_is_no_check() -> None:
    evidence = Evidence("1", 1, "p", 1, "Result", 1, "1")
    good = RoundAnswer("x", (evidence,), ("2",), is_checked=True)
    assert RoundAnswer.from_finding("x", good.finding()) == good
    for bad in (None, 5, {}, {"evidence": 1, "unsupported_numbers": []},
                {"evidence": [{}], "unsupported_numbers": []},
                {"evidence": [5], "unsupported_numbers": []}):  # fmt: skip
        assert not RoundAnswer.from_finding("x", bad).is_checked
