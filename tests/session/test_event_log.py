"""The numbered events of a session: read by number, also after a kill, and bounded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples
from support import Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.logging.log import TelemetryLogger
from taskweaver.module.event_emitter import (
    EventScope,
    PostEventType,
    RoundEventType,
    TaskWeaverEvent,
)
from taskweaver.session.errors import EventsGone, EventsToCome, SessionClosed, SessionError
from taskweaver.session.storage import event_log
from taskweaver.session.storage.event_log import EVENTS_FILE, EventLog, read_events
from taskweaver.utils.sqlite_files import open_private


@pytest.fixture(scope="module")
def logger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelemetryLogger]:
    with TelemetryLogger(tmp_path_factory.mktemp("log") / "log.txt") as logger:
        yield logger


def piece(text: str, round_id: str = "r1", kind: Any = PostEventType.post_message_update) -> Any:
    scope = EventScope.round if isinstance(kind, RoundEventType) else EventScope.post
    return TaskWeaverEvent(scope, kind, round_id, None, text, {"is_end": True}, "main")


def texts(log: EventLog, after: int = 0, limit: int = 500) -> list[str]:
    return [event.fields["msg"] for event in log.read(after, limit)]


def test_a_session_keeps_what_its_listeners_hear(tmp_path: Path) -> None:
    script = Script([planner_reply("User", "one"), planner_reply("User", "two")])
    with TaskWeaverApp(make_project(tmp_path / "project", has_table=False), model=script) as app:
        session = app.get_session()
        assert session.events.last == 0
        first = session.send_message("hello")
        middle = session.events.last
        second = session.send_message("again")
        events = session.events.read(0)
        assert [event.number for event in events] == list(range(1, session.events.last + 1))
        assert session.events.read(middle) == events[middle:]
        assert {event.fields["round_id"] for event in events[:middle]} == {first.id}
        assert {event.fields["round_id"] for event in events[middle:]} == {second.id}
        assert (events[0].kind, events[-1].kind) == ("round_start", "round_end")
        assert {event.fields["branch"] for event in events} == {"main"}
        session.stop()
        with pytest.raises(SessionClosed):
            session.events.read(0)
        again = app.resume_session(session.session_id)
        assert again.events.read(0) == events
        assert again.events.last == events[-1].number


def test_the_first_listener_hears_of_an_event_before_readers_of_the_log(tmp_path: Path) -> None:
    """That of a server lets a reader who saw the end of a round change the branch."""
    script = Script([planner_reply("User", "one")])
    with TaskWeaverApp(make_project(tmp_path / "project", has_table=False), model=script) as app:
        session = app.get_session()
        found: list[int] = []

        class Numbers:
            def handle(self, _: TaskWeaverEvent) -> None:
                found.append(session.events.last)

        session.event_emitter.register(Numbers(), is_first=True)
        session.send_message("hello")
        assert found == list(range(session.events.last))


@settings(max_examples=examples(40))
@given(
    sizes=st.lists(st.integers(1, 150), max_size=6),
    texts_=st.lists(st.text(st.characters()), max_size=8),
    cuts=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_readers_lose_no_event_and_see_none_twice(
    logger: TelemetryLogger, sizes: list[int], texts_: list[str], cuts: list[bool]
) -> None:
    """Whenever they read, and whether or not the log is closed and opened between."""
    written: list[str] = []
    read: list[str] = []
    position = 0
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder), logger)
        for size, cut in zip(sizes, cuts, strict=False):
            for number in range(size):
                text = texts_[number] if number < len(texts_) else str(number)
                log.handle(piece(text))
                written.append(text)
            if cut:
                log.close()
                log = EventLog(Path(folder), logger)
                continue
            while events := log.read(position, 100):
                assert events[0].number == position + 1
                position = events[-1].number
                read += [event.fields["msg"] for event in events]
        while events := log.read(position, 100):
            position = events[-1].number
            read += [event.fields["msg"] for event in events]
        log.close()
    assert read == written


def test_numbers_far_in_the_past_and_in_the_future_are_refused(
    tmp_path: Path, logger: TelemetryLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "_MOST_KEPT", 100)
    monkeypatch.setattr(event_log, "_FORGOTTEN", 30)
    log = EventLog(tmp_path, logger)
    for number in range(1, 1001):
        log.handle(piece(str(number)))
    with pytest.raises(EventsToCome, match="1000"):
        log.read(1001)
    with pytest.raises(EventsGone) as gone:
        log.read(0)
    first = gone.value.first
    assert 880 <= first <= 960
    assert texts(log, first - 1)[0] == str(first)
    with pytest.raises(EventsGone):
        log.read(first - 2)
    log.close()
    again = EventLog(tmp_path, logger)
    assert texts(again, first - 1)[0] == str(first)
    assert len(texts(again, first - 1)) <= 101
    again.close()


def test_another_process_reads_the_events_of_a_branch(
    tmp_path: Path, logger: TelemetryLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees what was written so far, and hears when some are no longer kept."""
    monkeypatch.setattr(event_log, "_MOST_KEPT", 2)
    monkeypatch.setattr(event_log, "_FORGOTTEN", 1)
    assert read_events(tmp_path, "", 0, 9) == ([], 0)
    open_private(tmp_path / EVENTS_FILE).close()  # its owner has yet to make its tables
    assert read_events(tmp_path, "", 0, 9) == ([], 0)
    log = EventLog(tmp_path, logger)
    for text, branch in (("one", "a"), ("two", "b"), ("three", "a")):
        log.handle(replace(piece(text), branch=branch))
    assert read_events(tmp_path, "a", 0, 9) == ([], 0)
    log.flush()
    found, newest = read_events(tmp_path, "a", 0, 9)
    assert ([one.fields["msg"] for one in found], newest) == (["three"], 3)
    assert [one.number for one in read_events(tmp_path, "", 0, 1)[0]] == [2]
    with pytest.raises(EventsToCome):
        read_events(tmp_path, "a", 4, 9)
    log.handle(piece("four"))
    log.flush()
    with pytest.raises(EventsGone):
        read_events(tmp_path, "a", 1, 9)
    log.close()
    (tmp_path / EVENTS_FILE).write_text("no database at all, whatever its name says" * 9)
    with pytest.raises(SessionError, match="cannot be read"):
        read_events(tmp_path, "a", 0, 9)


def test_many_long_events_are_bounded_by_size(
    tmp_path: Path, logger: TelemetryLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "_MOST_CHARS", 100_000)
    monkeypatch.setattr(event_log, "_FORGOTTEN", 10)
    log = EventLog(tmp_path, logger)
    for _ in range(600):
        log.handle(piece("x" * 1000))
    last = log.last
    assert len(log.read(last - 50)) == 50
    with pytest.raises(EventsGone):
        log.read(last - 200)
    log.close()


WRITER = """
import os, sys
from pathlib import Path
from taskweaver.logging.log import TelemetryLogger
from taskweaver.module.event_emitter import EventScope, PostEventType
from taskweaver.module.event_emitter import RoundEventType, TaskWeaverEvent
from taskweaver.session.storage.event_log import EventLog
log = EventLog(Path(sys.argv[1]), TelemetryLogger())
def emit(kind, text, round_id="r1"):
    log.handle(TaskWeaverEvent(EventScope.post, kind, round_id, None, text, {}, "b"))
emit(RoundEventType.round_start, "question")
for number in range(10):
    emit(PostEventType.post_message_update, str(number))
print(log.read(0)[-1].number, os.getpid(), flush=True)
for number in range(10):
    emit(PostEventType.post_message_update, "unread")
sys.stdin.read()
"""


def test_a_killed_program_reuses_no_number_and_its_round_is_ended(
    tmp_path: Path, logger: TelemetryLogger, command_line: CommandLine
) -> None:
    command = [*command_line.script, WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        seen, pid = map(int, writer.stdout.readline().split())
        os.kill(pid, signal.SIGKILL)
    log = EventLog(tmp_path, logger)
    assert [event.fields["msg"] for event in log.read(0)][:11] == ["question", *map(str, range(10))]
    ended = log.read(seen)
    assert [(event.kind, event.fields["round_id"], event.fields["branch"]) for event in ended] == [
        ("round_error", "r1", "b"),
        ("round_end", "r1", "b"),
    ]
    assert min(event.number for event in ended) > seen + 10
    log.close()
    again = EventLog(tmp_path, logger)
    assert again.read(seen) == ended, "a round is ended once"
    again.close()


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_damaged_log_is_replaced_and_numbers_go_on_beyond_the_old_ones(
    tmp_path: Path, logger: TelemetryLogger, content: bytes
) -> None:
    (tmp_path / EVENTS_FILE).write_bytes(content)
    log = EventLog(tmp_path, logger)
    log.handle(piece("new"))
    after = log.last - 1
    assert texts(log, after) == ["new"]
    if content:
        assert after > 1_000_000
        with pytest.raises(EventsGone):
            log.read(20_000)
    log.close()


def test_a_log_without_a_place_hinders_nothing_and_says_so(
    tmp_path: Path, logger: TelemetryLogger
) -> None:
    log = EventLog(tmp_path / "gone", logger)
    for _ in range(600):
        log.handle(piece("x"))
    with pytest.raises(SessionError, match="No events are kept"):
        log.read(0)
    log.close()


def test_readers_are_called_for_each_event_and_at_the_end(
    tmp_path: Path, logger: TelemetryLogger
) -> None:
    log, calls = EventLog(tmp_path, logger), list[int]()

    def on_event() -> None:
        calls.append(threading.get_ident())

    log.listen(on_event)
    log.handle(piece("a"))
    log.handle(piece("b"))
    log.close()
    assert calls == [threading.get_ident()] * 3
    log.unlisten(on_event)


def test_data_that_is_no_json_becomes_text(tmp_path: Path, logger: TelemetryLogger) -> None:
    log = EventLog(tmp_path, logger)
    odd = piece("\ud800 lone")
    odd.extra["path"] = Path("x/y")
    odd.extra["kind"] = EventScope.post
    log.handle(odd)
    fields = log.read(0)[0].fields
    assert fields["extra"] == {"is_end": True, "path": "x/y", "kind": "post"}
    assert json.loads(log.read(0)[0].data)["msg"] == "\ud800 lone"
    log.close()
