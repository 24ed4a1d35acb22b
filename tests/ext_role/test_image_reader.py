"""The ImageReader: which images are looked at, which are not, and what is said of both."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ext_role.image_reader.image_reader import MAX_BYTES
from taskweaver.llm.types import ChatMessage
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.session.session import Session
from taskweaver.utils.images import image_kind

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ALONE: dict[str, Any] = {"session.roles": ["image_reader"]}
PLANNED: dict[str, Any] = {"session.roles": ["planner", "image_reader"]}


def named(image: str) -> str:
    return json.dumps({"response": {"image_url": image}})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "project")
    (folder / "data" / "dot.png").write_bytes(PNG)
    return folder


@contextmanager
def opened(project: Path, script: Script, config: dict[str, Any]) -> Iterator[Session]:
    with TaskWeaverApp(project, model=script, config=config) as app:
        assert app.warnings == []
        yield app.get_session()


def answer(round_: Round) -> str:
    assert round_.state == "finished"
    return round_.post_list[-1].message


def shown(message: ChatMessage) -> str:
    return message["content"][1]["image_url"]["url"]


def test_an_image_of_the_data_folder_is_looked_at_and_the_planner_sees_it(project: Path) -> None:
    script = Script([
        planner_reply("ImageReader", "what is on dot.png?"), named("dot.png"), "a red dot",
        planner_reply("User", "a red dot"),
    ])  # fmt: skip
    with opened(project, script, PLANNED) as session:
        round_ = session.send_message("what is on that picture?")
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert shown(script.prompts[2][-1]) == shown(script.prompts[3][-1]) == url
    assert "- dot.png" in str(script.prompts[1][0]["content"])
    post = round_.post_list[2]
    (attachment,) = post.get_attachment(AttachmentType.image_url)
    assert (attachment.content, attachment.extra) == ("dot.png", {"image_url": url})
    assert "a red dot" in post.message
    assert answer(round_) == "a red dot"


def test_a_planner_with_another_model_reads_the_words_only(project: Path) -> None:
    replies = [planner_reply("ImageReader", "x"), named("dot.png"), "a dot"]
    script = Script([*replies, planner_reply("User", "!")])
    config = PLANNED | {
        "ext_llms.llm_configs": {"eyes": {"llm.api_type": "function"}},
        "image_reader.llm_alias": "eyes",
    }
    with TaskWeaverApp(project, model=script, config=config) as app:
        round_ = app.get_session().send_message("go")
    assert not round_.post_list[2].get_attachment(AttachmentType.image_url)
    assert "a dot" in script.last()
    assert "image/png" in script.last(-2)
    assert "image/png" not in script.last()


def test_an_address_is_passed_on_and_files_are_read_by_any_path_to_them(project: Path) -> None:
    address = "https://example.org/a%20b.png?x=1"
    script = Script([named(address), "a cat"])
    with opened(project, script, ALONE) as session:
        assert "a cat" in answer(session.send_message(f"what is on {address}?"))
        assert shown(script.prompts[1][-1]) == address
        cwd = session.execution_cwd
        (cwd / "plots").mkdir()
        (cwd / "plots" / "own.gif").write_bytes(b"GIF89a")
        (cwd / "link.png").symlink_to(project / "data" / "dot.png")
        for name in ("plots/own.gif", str(cwd / "plots" / "own.gif"), "link.png", "dot.png"):
            script._replies = iter([named(name), "seen"])
            assert "seen" in answer(session.send_message("look")), name
        script._replies = iter(["the one with the dot"])  # in no form
        assert "not clear which image" in answer(session.send_message("look"))


def test_nothing_else_of_the_machine_is_read_and_what_cannot_be_is_told(project: Path) -> None:
    """The model is asked once, for the name: a script without a further reply fails."""
    outside = [
        str(project / "secret.png"), "../secret.png", "out.png", "folder/secret.png", "/etc/passwd",
        str(project / "data2" / "near.png"), str(project / "data" / ".." / "secret.png"),
        "/no/such/file.png",
    ]  # fmt: skip
    no_file = "neither an http or https address nor a file"
    reasons = {
        **dict.fromkeys(outside, "only images there are read"),
        "gone.png": "the file does not exist",
        "text.png": "no PNG, JPEG, GIF or WebP",
        "large.png": "larger than 10 MiB",
        ".": "cannot be read: it is not a file",
        **dict.fromkeys(("a\0b.png", "pipe.png", "circle.png", "x" * 5000), "cannot be read"),
        **dict.fromkeys(("file:///etc/passwd", "data:image/png;base64,AA"), no_file),
        "": "not clear which image",
    }
    (project / "secret.png").write_bytes(PNG)
    (project / "data2").mkdir()
    (project / "data2" / "near.png").write_bytes(PNG)
    with opened(project, Script(map(named, reasons)), ALONE) as session:
        cwd = session.execution_cwd
        (cwd / "out.png").symlink_to(project / "secret.png")
        (cwd / "folder").symlink_to(project)
        (cwd / "text.png").write_bytes(b"hello")
        (cwd / "large.png").write_bytes(PNG + bytes(MAX_BYTES))
        os.mkfifo(cwd / "pipe.png")
        (cwd / "circle.png").symlink_to("circle.png")
        for name, reason in reasons.items():
            assert reason in answer(session.send_message("what is it?")), name


def test_a_file_is_what_its_content_says() -> None:
    kinds = [b"\xff\xd8\xff\xe0", b"GIF87a", b"RIFF\x00\x00\x00\x00WEBPVP8 ", PNG]
    assert [image_kind(data) for data in kinds] == ["jpeg", "gif", "webp", "png"]
    assert image_kind(b"RIFF\x00\x00\x00\x00WAVE") is None


def test_the_offline_analyst_says_that_it_sees_none(project: Path) -> None:
    with TaskWeaverApp(project, config=ALONE | {"llm.api_type": "offline"}) as app:
        text = answer(app.get_session().send_message("What is on dot.png?"))
        assert "dot.png was found" in text
        assert "sees no images" in text
        assert "image_reader.llm_alias" in text
