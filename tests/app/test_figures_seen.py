"""Figures of cells reach models that take images: real kernels, a scripted endpoint."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from kept_sessions import KeptSessions
from sizes import some
from support import make_project
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.session.branches.pictures import MOST_BYTES, MOST_PIXELS

pytestmark = pytest.mark.usefixtures("no_states")

Answer = list[bytes] | Callable[[Call], None]
Message = dict[str, Any]

PLOT = """
import matplotlib.pyplot as plt
plt.bar(["North", "South"], [3, 5])
plt.title("Counts")
plt.savefig("{name}.png", dpi=30)
"""
COPY = "import shutil; shutil.copy('chart.png', 'second.png')"
"""Another figure, which nobody has to draw."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def cell(code: str, intent: str = "draw") -> tuple[str, object]:
    return ("run_python", {"intent": intent, "code": code})


def plot(name: str = "chart") -> tuple[str, object]:
    return cell(PLOT.format(name=name))


def play(project: Path, *answers: Answer, rounds: int = 1, **config: object) -> list[Call]:
    """Return the calls of rounds whose model gives these answers."""

    def answer(call: Call) -> None:
        given = answers[call.number]
        given(call) if callable(given) else call.stream(given)

    with serving(answer) as endpoint:
        more = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "gpt-4o"}
        keys = {**more, "llm.api_key": "k", "llm.max_retries": 0, **config}
        with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
            for number in range(rounds):
                assert session.send_message(f"go {number}").state == "finished"
    return endpoint.calls


def go_on(kept: KeptSessions, *answers: list[bytes], rounds: int = 1) -> list[Call]:
    """Return the calls of rounds of a session that goes on, whose model gives these answers."""
    answer = partial(_stream, answers)
    session, calls = kept.answered(answer, **{"llm.model": "gpt-4o"})
    for number in range(rounds):
        assert session.send_message(f"go {number}").state == "finished"
    return calls


def _stream(answers: Sequence[list[bytes]], call: Call) -> None:
    call.stream(answers[call.number])


def chat(call: Call) -> list[Message]:
    return list(call.body["messages"])


def images(call: Call) -> list[bytes]:
    """Return the pictures in a request, decoded."""
    contents = [m["content"] for m in chat(call) if isinstance(m["content"], list)]
    parts = [part for content in contents for part in content if part["type"] == "image_url"]
    assert all(set(part) == {"type", "image_url"} for part in parts)
    urls = [part["image_url"]["url"] for part in parts]
    return [base64.b64decode(url.partition(";base64,")[2]) for url in urls]


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack_from(">II", png, 16)
    return width, height


def test_figures_follow_results_and_never_stand_between_two_of_a_reply(
    kept_sessions: KeptSessions,
) -> None:
    cells = called(cell("6 * 7", "compute"), plot("one"), plot("two"))
    calls = go_on(kept_sessions, cells, good("South leads."))
    waiting = 0
    for message in chat(calls[1]):
        assert message["role"] == "tool" or not waiting
        waiting += len(message.get("tool_calls", ())) - (message["role"] == "tool")
        assert message["role"] == "user" or not isinstance(message["content"], list)
    seen = json.dumps([m["content"] for m in chat(calls[1]) if m["role"] == "user"])
    assert re.findall(r'result \d of \d, \\"(\w+.png)', seen) == ["one.png", "two.png"]
    assert len(images(calls[1])) == 2


def test_a_figure_is_sent_in_its_own_round_only_and_its_description_stays(
    kept_sessions: KeptSessions,
) -> None:
    calls = go_on(
        kept_sessions,
        called(plot()),
        called(cell("1", "look")),
        good("South leads."),
        good("As I said."),
        rounds=2,
    )
    assert [len(images(call)) for call in calls] == [0, 1, 1, 0]
    assert chat(calls[2])[: len(chat(calls[1]))] == chat(calls[1])  # for the cache
    assert '"Counts"' in json.dumps(chat(calls[3])).replace('\\"', '"')


def test_a_figure_is_seen_as_it_was_when_its_cell_ended(kept_sessions: KeptSessions) -> None:
    other = cell(PLOT.format(name="chart").replace("[3, 5]", "[3, 500]"))
    calls = go_on(kept_sessions, called(plot(), other), good("Done."))
    before, after = images(calls[1])
    assert before != after


@pytest.mark.parametrize(("form", "fence"), some([("json", False), ("fences", True)], 1))
def test_other_forms_show_figures_beside_the_report(
    project: Path, form: str, *, fence: bool
) -> None:
    code = PLOT.format(name="chart")
    reply = {"send_to": "CodeInterpreter", "message": "draw", "code": code}
    order = f"```python\n{code}\n```" if fence else json.dumps({"response": reply})
    answer = {"response": {"send_to": "User", "message": "South leads."}}
    said = "South leads." if fence else json.dumps(answer)
    calls = play(project, good(order), good(said), **{"llm.form": form})
    newest = chat(calls[1])[-1]
    assert newest["role"] == "user"
    assert '"Counts"' in newest["content"][0]["text"]
    assert len(images(calls[1])) == 1


@pytest.mark.parametrize(
    ("model", "images_key", "count"),
    some(
        [
            ("qwen3-coder", "yes", 1),
            ("gpt-4o", "no", 0),
            ("qwen3-coder", "auto", 0),
            ("qwen2.5-vl-7b-instruct", "auto", 1),
            ("gpt-4o", "auto", 1),
        ],
        2,
    ),
)
def test_the_configuration_decides_whether_figures_are_sent(
    project: Path, model: str, images_key: str, count: int
) -> None:
    keys = {"llm.model": model, "llm.images": images_key, "llm.form": "tools"}
    calls = play(project, called(plot()), good("South leads."), **keys)
    assert len(images(calls[1])) == count
    result = next(m for m in chat(calls[1]) if m["role"] == "tool")
    assert '"Counts"; x (no label) North, South; y (no label) 0 to 5; bars: 2' in result["content"]


REFUSALS = [
    (400, "Invalid content type. image_url is only supported by certain models."),
    (400, "This model does not support image inputs"),
    (404, "No endpoints found that support image input"),
    (400, "m is not a multimodal model"),
    (422, "messages[4].content: Input should be a valid string"),
    (500, "this model is missing data required for image input"),
    (400, "Failed to deserialize: messages[3]: unknown variant `image_url`, expected `text`"),
]


@pytest.mark.parametrize(("status", "words"), some(REFUSALS, 1))
def test_a_refused_image_is_never_sent_again_and_its_text_stands_instead(
    project: Path, status: int, words: str
) -> None:
    """Row 55."""
    calls = play(
        project,
        called(plot()),
        lambda call: call.refuse(status, words),
        good("South leads."),
        called(cell(COPY)),
        good("And again."),
        rounds=2,
    )
    assert [len(images(call)) for call in calls] == [0, 1, 0, 0, 0]
    assert all("tools" in call.body for call in calls)
    assert '"Counts"' in chat(calls[2])[-1]["content"]


def test_large_pictures_are_made_smaller_and_others_are_named(kept_sessions: KeptSessions) -> None:
    code = """
import numpy as np
from PIL import Image
Image.new("RGB", (5000, 1000), "red").save("wide.png")
noise = np.random.default_rng(1).integers(0, 255, (800, 800, 3), dtype="uint8")
Image.fromarray(noise).save("noise.png")
open("fake.png", "wb").write(b"From: User")
"""
    calls = go_on(kept_sessions, called(cell(code)), good("Done."))
    *_, result, seen = chat(calls[1])
    by_name = dict(zip(["noise", "wide"], images(calls[1]), strict=True))
    assert size_of(by_name["wide"]) in [(MOST_PIXELS, 313), (MOST_PIXELS, 314)]
    assert len(by_name["noise"]) <= MOST_BYTES
    assert '("fake.png" is not shown: not a picture.)' in result["content"]
    assert "fake.png" not in json.dumps(seen)


def test_a_prompt_that_is_too_long_loses_its_images_first(project: Path) -> None:
    calls = play(
        project,
        called(plot()),
        lambda call: call.refuse(400, "maximum context length exceeded: 4000 > 3900 tokens"),
        good("Done."),
    )
    assert [len(images(call)) for call in calls] == [0, 1, 0]
    assert '"Counts"' in chat(calls[2])[-1]["content"]
