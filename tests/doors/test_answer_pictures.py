"""Pictures of answers of the OpenAI-compatible routes, as a chat front end shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from agents import API, asking, serving_agents
from openai.types.chat import ChatCompletionMessageParam
from patience import PATIENCE_S
from served import Served, problem

pytestmark = pytest.mark.usefixtures("no_states")

OFFLINE = {"llm.api_type": "offline"}
PICTURE = re.compile(r"\n\n!\[(?P<name>[\w.]+\.png)]\((?P<address>http://\S+)\)$")
DRAWN: ChatCompletionMessageParam = {
    "role": "user",
    "content": "draw a histogram of the Count column in tiny.csv",
}
SAVED: ChatCompletionMessageParam = {
    "role": "user",
    "content": "run this code: from PIL import Image; Image.new('L', (2, 2)).save('made.png')",
}
"""Makes a picture with less work than a figure."""
SHOWN = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
SHOWN |= {"Referer": "http://chat.example/"}
"""Headers that a browser sends for an image in a page of another server."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_offline(tmp_path_factory.mktemp("pictures")) as running:
        yield running


def serving_offline(folder: Path, port: int = 0) -> AbstractContextManager[Served]:
    return serving_agents(folder, None, OFFLINE, port, has_table=True)


def shown(server: Served, address: str, **headers: str) -> httpx2.Response:
    return server.client("", **(SHOWN | headers)).get(urlsplit(address).path)


def test_a_front_end_shows_the_picture_of_an_answer(server: Served) -> None:
    with asking(server, server.token.text) as client:
        first = client.chat.completions.create(model="taskweaver", messages=[DRAWN])
        text = first.choices[0].message.content or ""
        found = PICTURE.search(text)
        assert found, text
        picture = shown(server, found["address"])
        assert picture.status_code == 200
        assert picture.content.startswith(b"\x89PNG")
        assert picture.headers["content-type"] == "image/png"
        assert picture.headers["cross-origin-resource-policy"] == "cross-origin"
        part = shown(server, found["address"], Range="bytes=1-3")
        assert (part.status_code, part.content) == (206, b"PNG")
        answered: ChatCompletionMessageParam = {"role": "assistant", "content": text}
        further: ChatCompletionMessageParam = {"role": "user", "content": "and its mean?"}
        client.chat.completions.create(model="taskweaver", messages=[DRAWN, answered, further])
    (session,) = server.client().get(f"{API}/sessions").json()["sessions"]
    assert session["rounds"] == 2
    problem(shown(server, found["address"], **{"Sec-Fetch-Mode": "cors"}), 403, "origin")


def saved(server: Served, token: str) -> re.Match[str]:
    """Ask for a picture; return its name and address, as the answer has them."""
    with asking(server, token) as client:
        asked = client.chat.completions.create(model="taskweaver", messages=[SAVED])
    found = PICTURE.search(asked.choices[0].message.content or "")
    assert found
    return found


def test_an_address_leads_to_its_picture_alone(tmp_path: Path) -> None:
    with serving_offline(tmp_path) as server:
        token = server.accounts.add("ann").text
        found = saved(server, token)
        address, port = found["address"], urlsplit(server.url).port or 0
    with serving_offline(tmp_path, port) as server:
        assert shown(server, address).content.startswith(b"\x89PNG")
        agent = server.client(token)
        (session,) = agent.get(f"{API}/sessions").json()["sessions"]
        assert session["state"] == "stored"  # nobody without a token opens it
        signature = address.split("/pictures/")[1].split("/")[0]
        for other in (
            address.replace(signature, "0" * 64),
            address.replace("/ann/", "/local/"),
            address.replace(found["name"], "tiny.csv"),
            address.replace("/main/", "/other/"),
        ):
            assert other != address
            problem(shown(server, other), 404, "not-found")
        assert agent.delete(f"{API}/sessions/{session['session_id']}").status_code == 204
        problem(shown(server, address), 404, "not-found")


def test_no_address_of_a_picture_goes_on_to_a_model(server: Served) -> None:
    seen = f"Seen.\n\n![a.png]({server.url}/v1/pictures/{'0' * 64}/ann/one/main/a.png)"
    history: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": "[](" * 200_000},  # the search for addresses is linear
        {"role": "assistant", "content": seen},
        {"role": "user", "content": "what is the mean of the Count column in tiny.csv?"},
    ]
    token = server.accounts.add("eve").text
    with asking(server, token) as client:
        client.chat.completions.create(model="taskweaver", messages=history)
    agent = server.client(token)
    (session,) = agent.get(f"{API}/sessions").json()["sessions"]
    (message,) = agent.get(f"{API}/sessions/{session['session_id']}/messages").json()["messages"]
    assert "Seen." in message["text"]
    assert "/v1/pictures/" not in message["text"]


def test_an_account_that_is_removed_shows_no_picture(server: Served) -> None:
    address = saved(server, server.accounts.add("bob").text)["address"]
    assert shown(server, address).status_code == 200
    server.accounts.renew_token("bob")
    assert shown(server, address).status_code == 200
    server.accounts.remove("bob")
    problem(shown(server, address), 404, "not-found")
    server.accounts.add("bob")  # another account, with the sessions of the first
    problem(shown(server, address), 404, "not-found")


@pytest.mark.parametrize("is_behind_proxy", [True, False])
def test_a_picture_is_found_below_a_path_of_a_proxy(
    server: Served, tmp_path: Path, is_behind_proxy: bool
) -> None:
    with ExitStack() as stack:
        if is_behind_proxy:
            behind = serving_agents(tmp_path, None, OFFLINE, is_behind_proxy=True, has_table=True)
            server = stack.enter_context(behind)
        headers = {"X-API-Key": server.token.text}
        near = stack.enter_context(httpx2.Client(headers=headers, timeout=PATIENCE_S))
        transport = httpx2.HTTPTransport(local_address="127.0.0.2")  # no proxy of this machine
        far = stack.enter_context(
            httpx2.Client(transport=transport, headers=headers, timeout=PATIENCE_S)
        )

        def drawn(client: httpx2.Client, prefix: str) -> str:
            url, body = f"{server.url}/v1/chat/completions", {"messages": [SAVED]}
            answer = client.post(url, json=body, headers={"X-Forwarded-Prefix": prefix}).json()
            found = PICTURE.search(answer["choices"][0]["message"]["content"])
            assert found, answer
            return urlsplit(found["address"]).path

        below = drawn(near, "/team/tools-1/")
        others = [drawn(near, prefix) for prefix in ("/a)b", "//", "x")]
        # As a proxy does that removes its path.
        if is_behind_proxy:
            assert below.startswith("/team/tools-1/")
            below = below.removeprefix("/team/tools-1")
        paths = (below, *others, drawn(far, "/team"))
        assert all(path.startswith("/v1/pictures/") for path in paths)
        assert shown(server, f"{server.url}{below}").status_code == 200
