"""Events become blocks: what is shown, what is left out, and nothing twice."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from console_story import (
    ANSWER,
    CODE,
    PLAN,
    answered_round,
    attachment,
    message,
    order,
    post,
    printed,
    round_,
    run,
)

from taskweaver.console.render import MOST_LINES, RoundView
from taskweaver.console.terminal.blocks import (
    AnswerBlock,
    Block,
    CodeBlock,
    FailureBlock,
    FilesBlock,
    NoteBlock,
    OrderBlock,
    OutputBlock,
    PlanBlock,
    RunBlock,
    SummaryBlock,
    ThoughtBlock,
    TracebackBlock,
    ValueBlock,
)
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.llm.types import Usage
from taskweaver.module.event_emitter import (
    EventScope,
    PostEventType,
    RoundEventType,
    SessionEventType,
    TaskWeaverEvent,
)

Kind = TypeVar("Kind", bound=Block)
START = round_(RoundEventType.round_start, "a question")
END = round_(RoundEventType.round_end)


class Album:
    """A surface that keeps what it is shown."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.previews: list[Block] = []
        self.statuses: list[str] = []

    def show(self, block: Block) -> None:
        self.blocks.append(block)

    def preview(self, block: Block | None) -> None:
        if block is not None:
            self.previews.append(block)

    def ask_status(self, text: str) -> None:
        self.statuses.append(text)

    @contextmanager
    def working(self, status: Callable[[], str]) -> Iterator[None]:
        self.statuses.append(status())
        yield

    def kinds(self) -> list[type[Block]]:
        return [type(block) for block in self.blocks]

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [block for block in self.blocks if isinstance(block, kind)]


def album_of(*events: TaskWeaverEvent) -> Album:
    album = Album()
    view = RoundView(album, lambda _branch: Path("/w/cwd"))
    for event in events:
        view.handle(event)
    return album


def test_a_round_reads_plan_order_thought_code_output_value_files_answer() -> None:
    album = album_of(*answered_round())
    assert album.kinds() == [
        PlanBlock, OrderBlock, ThoughtBlock, CodeBlock, OutputBlock, RunBlock, ValueBlock,
        FilesBlock, AnswerBlock, SummaryBlock,
    ]  # fmt: skip
    assert album.blocks[0] == PlanBlock(PLAN)
    assert album.blocks[3] == CodeBlock(CODE)
    assert album.blocks[4] == OutputBlock(("loading 2400 rows",))
    (ran,) = album.of(RunBlock)
    assert ran.is_ok
    assert album.blocks[7] == FilesBlock(("/w/cwd/mean_per_month.png",))
    assert album.blocks[8] == AnswerBlock(ANSWER)


def test_what_is_being_written_is_previewed_as_it_grows() -> None:
    previews = album_of(*answered_round()).previews
    for kind in (PlanBlock, ThoughtBlock, CodeBlock, OrderBlock, AnswerBlock):
        texts = [block.text for block in previews if isinstance(block, kind)]
        assert len(texts) > 1, kind
        assert all(len(text) <= len(texts[-1]) for text in texts) or kind is PlanBlock


def test_a_profile_is_shown_as_one_line() -> None:
    profile = 'Profile of 1 tables, request "x"\ntable "a.csv"\nEnd of profile: 2 lines'
    album = album_of(
        *run(code="profile_tables('a.csv')", report=f"### Result\n```\n{profile}\n```")
    )
    assert album.of(NoteBlock) == [NoteBlock("read a profile of 2 lines")]
    assert not album.of(ValueBlock)


def test_an_answer_leaves_out_the_value_above_it_and_a_plan_of_one_step() -> None:
    table = "```\nmonth\n1    12.5\n2    13.1\nName: Count, dtype: float64\n```"
    album = album_of(
        START,
        *order("CodeInterpreter", "Group Count by month.", "1. Compute the answer"),
        *run(),
        *order("User", f"Mean of Count per month\n\n{table}\n\nFrom `sales.csv`.", ""),
        END,
    )
    assert PlanBlock not in album.kinds()
    assert album.of(AnswerBlock) == [AnswerBlock("Mean of Count per month\n\nFrom `sales.csv`.")]


def test_a_failed_run_shows_the_end_of_its_traceback_and_that_it_is_mended() -> None:
    trace = "\n".join([*(f"  line {n}" for n in range(40)), "KeyError: 'Cuont'"])
    album = album_of(
        post(PostEventType.post_start, role="CodeInterpreter"),
        *attachment("reply_type", "python"),
        *attachment("reply_content", "df['Cuont']"),
        *attachment("execution_status", "FAILURE"),
        *attachment("execution_result", "### Execution\nThe code failed."),
        *attachment("code_error", trace),
        *attachment("revise_message", "Write the whole cell again."),
        *message("## Execution\nThe code failed."),
        post(PostEventType.post_send_to_update, role="CodeInterpreter"),
        post(PostEventType.post_end),
    )
    assert album.kinds() == [CodeBlock, RunBlock, TracebackBlock, NoteBlock]
    (ran,), (shown,) = album.of(RunBlock), album.of(TracebackBlock)
    assert not ran.is_ok
    assert shown.text.startswith("...")
    assert shown.text.endswith("KeyError: 'Cuont'")
    assert album.of(NoteBlock) == [NoteBlock("CodeInterpreter repairs the code")]


def test_an_unusable_reply_is_told_in_a_line_without_the_models_instructions() -> None:
    album = album_of(
        START,
        post(PostEventType.post_start, role="Planner"),
        *message("half a rep"),
        post(PostEventType.post_error, "Reply again with one JSON object"),
        *attachment("invalid_response", "half a rep"),
        *attachment("revise_message", "Reply again with one JSON object"),
        post(PostEventType.post_send_to_update, role="Planner"),
        post(PostEventType.post_end),
        *order("User", "done"),
        END,
    )
    assert album.kinds() == [NoteBlock, PlanBlock, AnswerBlock, SummaryBlock]
    assert "JSON" not in str(album.blocks[0])


def test_an_error_is_told_once_or_as_a_warning_where_the_round_survives_it() -> None:
    reason = "Model call failed, connection: refused"
    album = album_of(
        START,
        post(PostEventType.post_start, role="Planner"),
        post(PostEventType.post_error, reason),
        round_(RoundEventType.round_error, reason),
        END,
    )
    assert album.kinds() == [FailureBlock, SummaryBlock]
    assert album.blocks[0] == FailureBlock(reason)
    assert [done.is_ok for done in album.of(SummaryBlock)] == [False]
    gave_up = [
        post(PostEventType.post_start, role="CodeInterpreter"),
        post(PostEventType.post_error, "No usable code came back."),
        post(PostEventType.post_send_to_update, role="Planner"),
        post(PostEventType.post_end),
    ]
    album = album_of(START, *gave_up, *order("User", "It cannot be done."), END)
    assert album.blocks[0] == NoteBlock("No usable code came back.", is_warning=True)


def test_an_answer_that_gives_up_says_so() -> None:
    album = album_of(*order("User", "It cannot be done.", stop="TaskFailure"))
    assert album.of(AnswerBlock) == [AnswerBlock("It cannot be done.", gave_up=True)]
    for stop, is_ok in (("TaskFailure", False), ("Completed", True), ("Clarification", True)):
        album = album_of(START, *order("User", "Well.", stop=stop), END)
        assert [done.is_ok for done in album.of(SummaryBlock)] == [is_ok]


def test_output_is_shown_in_whole_lines_whatever_the_pieces() -> None:
    album = album_of(
        post(PostEventType.post_start, role="CodeInterpreter"),
        *attachment("reply_content", "work()"),
        *printed("a", "b\n10%\r50%\rc\r\nd", "e"),
        *printed("oh\n", stream="stderr"),
        *attachment("execution_status", "SUCCESS"),
    )
    assert album.of(OutputBlock) == [
        OutputBlock(("ab", "c")),
        OutputBlock(("oh",), is_error=True),
        OutputBlock(("de",)),
    ]


def test_a_flood_of_output_is_cut_and_counted() -> None:
    flood = "".join(f"line {n}\n" for n in range(MOST_LINES + 50))
    album = album_of(
        *attachment("reply_content", "work()"),
        *printed(flood, flood),
        *attachment("execution_status", "SUCCESS"),
    )
    shown = [line for block in album.of(OutputBlock) for line in block.lines]
    assert len(shown) == MOST_LINES
    assert NoteBlock(f"{MOST_LINES + 100:,} more lines of output are not shown") in album.blocks
    assert any("more lines" in status for status in album.statuses)


def test_tokens_and_cost_of_the_round_stand_in_its_last_line() -> None:
    spent = [Usage(100, 20, 0.5, 1)]
    album = Album()
    view = RoundView(album, lambda _branch: Path(), lambda: spent[0])
    assert view.status() == "Ctrl-C stops"
    spent[0] = Usage(1000, 220, 0.75, 2, is_estimated=True)
    assert view.status() == "1,100 tokens, Ctrl-C stops"
    for event in (START, END):
        view.handle(event)
    (done,) = album.of(SummaryBlock)
    assert (done.tokens, done.cost, done.is_estimated, done.is_ok) == (1100, 0.25, True, True)


def test_other_things_roles_tell_are_shown_as_remarks() -> None:
    album = album_of(
        TaskWeaverEvent(EventScope.session, SessionEventType.session_start, None, None, ""),
        post(PostEventType.post_start, role="WebSearch"),
        *attachment("text", "searching"),
        *attachment("verification", "INCORRECT"),
        *attachment("image_url", "data:image/png;base64,xyz"),
        *attachment("text", ""),
    )
    assert album.blocks == [
        NoteBlock("searching"),
        NoteBlock("the code was refused by its check", is_warning=True),
    ]


def test_a_pipe_of_any_encoding_gets_plain_lines() -> None:
    raw = io.BytesIO()
    surface = PlainSurface(io.TextIOWrapper(raw, "ascii"))
    view = RoundView(surface, lambda _branch: Path("/w"))
    with surface.working(view.status):
        for event in [*answered_round(), *order("User", "größer ☃ \ud800")]:
            view.handle(event)
    said = raw.getvalue().decode("ascii")
    assert "\x1b" not in said
    assert "| loading 2400 rows" in said
    assert said.count("groupby") == 1
