"""The model of a server over the agent API: found, tested, added, chosen and taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from agents import API, ask, new_session, serving_agents
from fake_endpoint import Call, FakeEndpoint, good, serving
from served import Served, problem

KEY = "sk-entered-in-the-page-0123456789"
OFFLINE = {"llm.api_type": "offline", "execution.zygote": False}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for module in ("setup", "selection.auto"):
        monkeypatch.setattr(f"taskweaver.llm.{module}.LOCAL_PORTS", {})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving_agents(tmp_path, None, OFFLINE) as running:
        yield running


def play(call: Call) -> None:
    """Play an endpoint that wants a key."""
    if call.headers.get("authorization") != f"Bearer {KEY}":
        call.refuse(401, "Incorrect API key provided")
    else:
        call.stream(good("42"))


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with serving(play) as made:
        yield made


def added(client: httpx2.Client, endpoint: FakeEndpoint, key: str = KEY) -> dict[str, Any]:
    body = {"provider": "other", "model": "m", "key": key, "address": endpoint.url}
    response = client.post(f"{API}/models", json=body).raise_for_status()
    assert key not in response.text
    found: dict[str, Any] = response.json()
    return found


def test_a_model_is_added_chosen_and_taken_back(server: Served, endpoint: FakeEndpoint) -> None:
    client = server.client()
    now = client.get(f"{API}/model").json()
    assert (now["model"]["id"], now["answers"], now["may_change"]) == ("offline", True, True)
    refused = added(client, endpoint, "sk-wrong-0123456789")
    assert refused["row"] is None
    assert refused["test"]["state"] == "failed"
    row = added(client, endpoint)["row"]
    assert (row["key_from"], row["is_local"]) == ("keys.json", True)
    tested = client.post(f"{API}/models/test", json={"id": row["id"]}).json()
    assert (tested["state"], tested["answer"]) == ("no-tools", "42")
    chosen = client.put(f"{API}/model", json={"id": row["id"], "scope": "user"}).json()
    assert chosen["note"].startswith("This project stays without a model")
    session = new_session(client)
    chosen = client.put(f"{API}/model", json={"id": row["id"], "scope": "project"}).json()
    assert chosen["model"]["name"] == "m"
    assert "42" in json.dumps(ask(client, session, "hello"))
    listed = client.get(f"{API}/models")
    assert KEY not in listed.text
    assert [one["is_answering"] for one in listed.json()["models"]] == [True, False]
    assert client.delete(f"{API}/model").json()["model"]["id"] == "offline"
    problem(client.delete(f"{API}/model"), 409, "nothing-to-undo")
    problem(client.post(f"{API}/models/test", json={"id": "none/x"}), 404, "not-found")


def test_others_than_admins_see_the_model_alone(server: Served) -> None:
    now = server.client(server.accounts.add("ann").text).get(f"{API}/model").json()
    why = "Chosen by the owner of this server."
    assert (now["may_change"], now["why_fixed"]) == (False, why)


def test_keys_are_taken_from_here_or_over_https(tmp_path: Path, endpoint: FakeEndpoint) -> None:
    with serving_agents(tmp_path, None, OFFLINE, is_behind_proxy=True) as server:
        for peer in ("10.0.0.7", "127.0.0.1"):
            client = server.client(**{"X-Forwarded-For": peer, "X-Forwarded-Proto": "http"})
            assert not client.get(f"{API}/models").json()["may_enter_key"]
            body = {"provider": "other", "model": "m", "key": KEY, "address": endpoint.url}
            problem(client.post(f"{API}/models", json=body), 403, "key-refused")
            assert endpoint.calls == []
        client = server.client(**{"X-Forwarded-For": "10.0.0.7", "X-Forwarded-Proto": "https"})
        assert client.get(f"{API}/models").json()["may_enter_key"]
        assert added(client, endpoint)["row"]


def test_a_key_is_neither_sent_to_an_address_of_ones_own_nor_shown(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = "sk-the-key-of-the-owner-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", owners)

    def echo(call: Call) -> None:
        sent = call.headers.get("authorization")
        call.stream(good(f"41 {sent}" if "m2" in str(call.body) else f"42 {sent}"))

    with serving(echo) as endpoint:
        client = server.client()
        body = {"provider": "other", "model": "m", "address": endpoint.url}
        found = client.post(f"{API}/models", json=body)
        assert found.json()["row"]["key_from"] == ""
        for model in ("m", "m2"):
            shown = client.post(f"{API}/models", json=body | {"model": model, "key": KEY})
            assert KEY[:12] not in shown.text
        kept = client.post(f"{API}/models", json=body)
        assert kept.json()["row"]["key_from"] == "keys.json"
        assert KEY in endpoint.calls[-1].headers["authorization"]
        for scope in ("user", "project"):
            client.put(f"{API}/model", json={"id": kept.json()["row"]["id"], "scope": scope})
            ask(client, new_session(client), "hello")
        assert owners not in str([call.headers for call in endpoint.calls])


def test_an_address_with_a_login_is_refused_and_not_shown(server: Served) -> None:
    for address in ("http://ann:pa55word@127.0.0.1:1/v1", "http://127.0.0.1:1/?key=pa55word"):
        body = {"provider": "other", "model": "m", "address": address}
        refused = server.client().post(f"{API}/models", json=body)
        problem(refused, 422, "invalid-model")
        assert "pa55word" not in refused.text


def test_a_choice_is_taken_back_by_the_user_who_made_it(server: Served) -> None:
    other = server.client(server.accounts.add("ann", role="admin").text)
    body = {"id": "offline", "scope": "user"}
    assert server.client().put(f"{API}/model", json=body).json()["can_undo"]
    assert not other.get(f"{API}/model").json()["can_undo"]
    problem(other.delete(f"{API}/model"), 409, "nothing-to-undo")
    assert server.client().delete(f"{API}/model").status_code == 200
