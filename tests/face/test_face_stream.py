"""Events of a question as an asynchronous iterator: order, bound, early ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fake_endpoint import Call, event, good, serving
from support import Script, code_reply, make_project, planner_reply

from taskweaver import TaskWeaver
from taskweaver.face import RoundFailed, TaskSession
from taskweaver.face import stream as subject
from taskweaver.llm.types import ChatMessage
from taskweaver.module.event_emitter import PostEventType, RoundEventType
from taskweaver.session.errors import FileNotAdded

pytestmark = pytest.mark.usefixtures("no_states")

ALONE = {"session.roles": ["code_interpreter"]}
SLOW = "import time\nfor i in range(600):\n    print('tick'); time.sleep(0.1)"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def slow_or_well(messages: Sequence[ChatMessage]) -> str:
    """Write a cell that runs for a minute, and for another question one that ends at once."""
    is_slow = "and now?" not in str(messages[-1]["content"])
    return code_reply(SLOW if is_slow else "'well'")


@pytest.fixture(scope="module")
def running(
    no_states: None, nothing_left_by_file: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TaskSession]:
    """A session that goes on through the tests, whose cells run for a minute."""
    project = make_project(tmp_path_factory.mktemp("running") / "project", has_table=False)
    with TaskWeaver(project, ALONE, model=slow_or_well) as tw, tw.session() as session:
        yield session


def streams() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "taskweaver-stream"]


def test_events_come_in_order_and_all_of_them(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MOST_WAITING", 2)
    code = "import sys\nfor i in range(50):\n    print(i); sys.stdout.flush()"

    async def read() -> None:
        async with TaskWeaver(project, ALONE, model=Script([code_reply(code)])) as tw:
            session = tw.session()
            stream = session.stream("go")
            events = [await anext(stream)]
            for _ in range(1000):
                await asyncio.sleep(0)
            assert stream._queue is not None
            assert len(stream._queue._events) <= 2, "the round waits for a slow reader"
            events += [event async for event in stream]
        assert "closed" in repr(tw)
        kinds = [event.t for event in events]
        assert (kinds[0], kinds[-1]) == (RoundEventType.round_start, RoundEventType.round_end)
        texts = [event.msg for event in events if event.t is PostEventType.post_execution_output]
        assert "".join(texts).split() == [str(number) for number in range(50)]
        assert session.answer is not None
        assert session.answer.round.id == events[0].round_id

    asyncio.run(read())
    assert streams() == []


def test_a_reader_that_leaves_early_ends_the_round(running: TaskSession) -> None:
    async def read() -> None:
        async for found in running.stream("go"):
            if found.t is PostEventType.post_execution_output:
                break
        assert "well" in running.ask("and now?").text  # waits for the end of the other round
        async with running.stream("go") as events:
            async for found in events:
                if found.t is PostEventType.post_execution_output:
                    break
        assert streams() == []
        assert [item async for item in events] == []
        assert "well" in (await running.ask_async("and now?")).text

    asyncio.run(read())
    first, _ = running.core.memory.conversation.rounds[-2:]
    assert "interrupted" in first.post_list[-1].message
    assert streams() == []


def test_a_cancelled_task_interrupts_its_cell(running: TaskSession) -> None:
    ticking = threading.Event()

    class Watch:
        def handle(self, found: object) -> None:
            if getattr(found, "t", None) is PostEventType.post_execution_output:
                ticking.set()

    async def cancel() -> None:
        task = asyncio.create_task(running.ask_async("go"))
        await asyncio.to_thread(ticking.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert streams() == []
        assert "well" in (await running.ask_async("and now?")).text

    watch = Watch()
    running.core.event_emitter.register(watch)
    asyncio.run(cancel())
    running.core.event_emitter.unregister(watch)


def test_a_cancelled_task_interrupts_its_model_call(project: Path) -> None:
    asked = threading.Event()

    def play(call: Call) -> None:
        if call.number:
            call.stream(good(planner_reply("User", "well")))
            return
        call.start()
        call.send(event("{"))
        asked.set()
        call.stall()

    async def cancel(session: TaskSession) -> None:
        task = asyncio.create_task(session.ask_async("go"))
        await asyncio.to_thread(asked.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert streams() == []
        assert (await session.ask_async("and now?")).text == "well"

    with serving(play) as endpoint:
        config = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.api_key": "k"}
        with TaskWeaver(project, config, model="m") as tw:
            asyncio.run(cancel(tw.session()))


def test_an_iterator_that_is_never_read_asks_nothing(project: Path) -> None:
    script = Script([])
    with TaskWeaver(project, model=script) as tw:
        tw.stream("go")
        asyncio.run(tw.stream("go").aclose())
    assert script.prompts == []


def test_errors_are_raised_in_the_reader(project: Path) -> None:
    def model(_: object) -> str:
        raise ValueError("the model is broken")

    async def read(session: TaskSession) -> None:
        with pytest.raises(FileNotAdded):
            await anext(session.stream("go", "none.csv"))
        events, kinds = session.stream("go"), []

        async def read_all() -> None:
            async for found in events:
                kinds.append(found.t)  # noqa: PERF401 - an error follows

        with pytest.raises(RoundFailed, match="broken"):
            await read_all()
        assert kinds[-1] is RoundEventType.round_end
        assert [item async for item in events] == []

    with TaskWeaver(project, model=model) as tw:
        asyncio.run(read(tw.session()))
    assert streams() == []
