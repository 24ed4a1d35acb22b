"""Files of the OpenAI-compatible routes, in and out, by the client of the package `openai`."""

from __future__ import annotations

import base64
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from agents import API, asking, await_answer
from served import Served, problem

from taskweaver.server.accounts import Quota

pytestmark = pytest.mark.usefixtures("no_states")

FRUIT = b"Kind,Count\npear,2\nplum,6\n"
MEAN = "what is the mean of the Count column in fruit.csv?"
LINK = re.compile(r"\[(?P<name>[\w.]+)]\((?P<address>http://\S+)\)")
CONFIG = {"llm.api_type": "offline"}


@pytest.fixture(scope="module")
def model() -> None:
    """Give no model: the project has one."""


def ask(client: Any, *messages: dict[str, Any]) -> Any:
    found = client.chat.completions.create(model="taskweaver", messages=messages)
    return found.choices[0].message


def user(text: str, **file: str) -> dict[str, Any]:
    parts: list[Any] = [{"type": "text", "text": text}]
    return {"role": "user", "content": [*parts, {"type": "file", "file": file}] if file else text}


def inline(content: bytes) -> str:
    return f"data:text/csv;base64,{base64.b64encode(content).decode()}"


def test_an_uploaded_file_is_kept_asked_about_and_deleted(server: Served) -> None:
    with asking(server) as client:
        made = client.files.create(file=("fruit.csv", FRUIT), purpose="user_data")
        assert (made.filename, made.bytes) == ("fruit.csv", len(FRUIT))
        assert [file.id for file in client.files.list()] == [made.id]
        assert client.files.retrieve(made.id).created_at == made.created_at
        assert client.files.content(made.id).content == FRUIT
        said = ask(client, user(MEAN, file_id=made.id))
        assert "**4**" in said.content
        assert "```python\n" in said.reasoning_content, "steps show the code"
        assert "read_table('fruit.csv')" in said.reasoning_content
        assert client.files.delete(made.id).deleted
        for gone in (made.id, "file-0", f".{made.id}"):
            with pytest.raises(openai.NotFoundError):
                client.files.retrieve(gone)
        again = {"role": "assistant", "content": said.content}
        first = user(MEAN, file_id=made.id)
        assert "**6**" in ask(client, first, again, user(MEAN.replace("mean", "maximum"))).content


def test_a_file_comes_with_its_message_and_again_with_a_chat_that_is_not_known(
    server: Served,
) -> None:
    with asking(server) as client:
        first = user(MEAN, file_data=inline(FRUIT), filename="../fruit.csv")
        answer = ask(client, first).content
        assert "**4**" in answer
        other = user(MEAN, file_data=inline(FRUIT + b"fig,10\n"), filename="fruit.csv")
        assert "**6**" in ask(client, other).content, "another chat, though its words are the same"
        told = {"role": "assistant", "content": "an answer of elsewhere"}
        assert "**4**" in ask(client, first, told, user(MEAN)).content
        for wrong in ({"file_id": "file-0"}, {"file_data": "data:,%%%"}, {"filename": "a/.."}):
            with pytest.raises(openai.APIStatusError) as found:
                ask(client, user("x", **wrong))
            assert found.value.status_code in {404, 422, 409}
    titles = [one["title"] for one in server.client().get(f"{API}/sessions").json()["sessions"]]
    assert "x" not in titles, "no session is left of a message that was refused"


def test_a_file_that_an_answer_made_has_an_address(server: Served) -> None:
    code = "run this code: print('wri' + 'tes'); open('made.csv', 'w').write('a\\n1\\n')"
    with asking(server) as client:
        stream = client.chat.completions.create(model="x", messages=[user(code)], stream=True)
        deltas = [chunk.choices[0].delta for chunk in stream if chunk.choices]
    steps = "".join(getattr(one, "reasoning_content", None) or "" for one in deltas)
    assert "writes" in steps, "a cell's output is streamed"
    found = LINK.search("".join(one.content or "" for one in deltas))
    assert found
    assert found["name"] == "made.csv"
    sent = server.client("").get(urlsplit(found["address"]).path)
    assert sent.text == "a\n1\n"
    assert sent.headers["content-disposition"].startswith("attachment")


def test_files_are_the_users_own_and_count_to_the_share(server: Served) -> None:
    token = server.accounts.add("small", quota=Quota(disk_mb=1)).text
    with asking(server, token) as small, asking(server) as other:
        kept = small.files.create(file=("a.bin", bytes(600_000)), purpose="assistants")
        with pytest.raises(openai.NotFoundError):
            other.files.content(kept.id)
        with pytest.raises(openai.RateLimitError, match="disk_mb"):
            small.files.create(file=("b.bin", bytes(600_000)), purpose="assistants")
        small.files.delete(kept.id)
        small.files.create(file=("b.bin", bytes(600_000)), purpose="assistants")


def test_malformed_uploads_are_refused(server: Served) -> None:
    client = server.client()
    problem(client.post("/v1/files", files={"other": b"x"}), 422, "invalid-body")
    problem(client.post("/v1/files", files={"file": ("..", b"x")}), 422, "invalid-body")
    problem(client.post("/v1/files", json={}), 415, "media-type")
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    problem(client.post("/v1/files", content=b"no form", headers=headers), 400, "bad-request")

    def without_length() -> Iterator[bytes]:
        yield b"--x--"

    for more in ({}, {"Content-Length": "1", "Transfer-Encoding": "chunked"}):
        sent = client.post("/v1/files", content=without_length(), headers=headers | more)
        problem(sent, 411, "length-required")
    many = user("x", file_data="")
    many["content"] += many["content"][1:] * 100
    refused = client.post("/v1/chat/completions", json={"messages": [many]})
    assert "archive" in problem(refused, 422, "invalid-body")["detail"]


def test_a_client_that_leaves_midway_is_no_failure(server: Served) -> None:
    token = server.accounts.add("leaving", quota=Quota(requests=1)).text
    head = (
        "POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
        f"Content-Type: multipart/form-data; boundary=x\r\nX-API-Key: {token}\r\n\r\n--x"
    )
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode())
    pause = threading.Event()
    while not any(entry.user == "leaving" for entry in server.accounts.audit(1000)):
        pause.wait(0.02)
    # The share of the request is given back after the log is written.
    await_answer(server.client(token), "/v1/files", lambda got: got.status_code == 200)
    assert "POST /v1/files failed" not in (server.log.read_text() if server.log.exists() else "")
