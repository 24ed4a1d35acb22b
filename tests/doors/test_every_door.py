"""What every door promises, for each of its operations: tokens, users apart, bodies, quotas."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import httpx2
import pytest
from agents import API, SteeredModel, ask, await_answer, new_session, serving_agents
from mcp_calls import failure, over_http
from served import Served, problem

from taskweaver.doors.kernel_api.door import KernelApi
from taskweaver.doors.mcp.door import McpDoor
from taskweaver.doors.page.door import PageDoor
from taskweaver.server.accounts import Quota

pytestmark = pytest.mark.usefixtures("no_states")
KERNELS = "/api/v1/sessions"
JSON = "application/json"


class Described(NamedTuple):
    """An operation as the OpenAPI document describes it."""

    method: str
    path: str
    facts: dict[str, Any]

    @property
    def body_type(self) -> str:
        """Media type of the body; empty without one."""
        return next(iter(self.facts.get("requestBody", {"content": {}})["content"]), "")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("doors")

    def more(sessions: Any) -> list[Any]:
        shares = sessions.accounts.admission
        kernels = KernelApi(sessions.app.kernels, folder / "users", shares)
        return [McpDoor(sessions), PageDoor(sessions), kernels]

    with serving_agents(folder, SteeredModel(), more=more) as running:
        yield running


@pytest.fixture(scope="module")
def document(client: httpx2.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> list[Described]:
    return [
        Described(method.upper(), path, facts)
        for path, item in document["paths"].items()
        for method, facts in item.items()
    ]


def sample(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    """Return a small value that fits a schema."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type", "null"):
        case "object":
            required = schema.get("required", ())
            return {name: sample(document, schema["properties"][name]) for name in required}
        case "array":
            return [sample(document, schema["items"])] * schema.get("minItems", 0)
        case kind:
            return {"string": "x", "integer": 1, "number": 1, "boolean": True}.get(kind)


def send(client: httpx2.Client, one: Described, document: Any, **parts: str) -> httpx2.Response:
    """Send a request for an operation whose path has some parts."""
    path = re.sub(r"{(\w+)}", lambda name: parts.get(name[1], "1"), one.path)
    if one.body_type == JSON:
        schema = one.facts["requestBody"]["content"][JSON]["schema"]
        return client.request(one.method, path, json=sample(document, schema))
    headers = {"Content-Type": one.body_type} if one.body_type else {}
    return client.request(one.method, path, content=b"x" if headers else b"", headers=headers)


def test_operations_are_described_and_take_no_address(
    document: dict[str, Any], operations: list[Described]
) -> None:
    assert len({one.path.split("/")[1] for one in operations}) >= 5, "all doors are there"
    assert all(one.facts["summary"] for one in operations)
    schemas = document["components"]["schemas"]
    names = {item["name"] for one in operations for item in one.facts.get("parameters", [])}
    for one in operations:
        if one.body_type == JSON:
            schema = one.facts["requestBody"]["content"][JSON]["schema"]
            model = schema["$ref"].rpartition("/")[2]
            own = schemas[model].get("properties", {}).keys()
            names |= own - {"address"} if model == "NewModel" else own  # an admin adds a model
    assert {"branch", "idea", "text"} < names
    words = {word for name in names for word in name.lower().split("_")}
    assert not words & {"url", "uri", "address", "host", "endpoint", "webhook", "callback", "proxy"}


def test_only_public_operations_work_without_a_token(
    server: Served, document: dict[str, Any], operations: list[Described]
) -> None:
    stranger = server.client("")
    public = [one for one in operations if not one.facts["security"]]
    for one in operations:
        response = send(stranger, one, document)
        if one in public:
            assert response.status_code != 401, one.path
        else:
            problem(response, 401, "token-missing")
    assert {one.path.split("/")[-1] for one in public} == {"", "{path}", "health", "{name}"}
    assert stranger.get("/api/v1/health").json()["active_sessions"] == 0


def test_bodies_of_another_form_are_refused(
    client: httpx2.Client, operations: list[Described]
) -> None:
    for one in operations:
        headers = {"Content-Type": JSON}
        path = re.sub(r"{\w+}", "1", one.path)
        if one.body_type == JSON:
            broken = client.request(one.method, path, content=b"{", headers=headers)
            problem(broken, 400, "no-json")
            problem(client.request(one.method, path, json=[1]), 422, "invalid-body")
            text = client.request(one.method, path, content=b"x", headers={"Content-Type": "x/y"})
            problem(text, 415, "media-type")
        elif not one.body_type and one.facts["security"]:
            problem(client.request(one.method, path, json={}), 413, "too-large")


def test_users_see_nothing_of_each_other(
    server: Served, document: dict[str, Any], operations: list[Described]
) -> None:
    ann, bob = (server.client(server.accounts.add(name).text) for name in ("ann", "bob"))
    session = new_session(ann, "secret plans")
    ask(ann, session, "say: the zanzibar plan", message_id="1")
    assert ann.post(KERNELS, json={"session_id": "anns"}).status_code == 201
    ids = {API: session.rpartition("/")[2], KERNELS: "anns"}
    for other in (bob, server.client()):
        for one in operations:
            base = API if one.path.startswith(API) else KERNELS
            if "{session_id}" in one.path and one.facts["security"]:
                response = send(other, one, document, session_id=ids[base], branch="main")
                problem(response, 404, "not-found")
        problem(other.get(f"{API}/events", params={"sessions": ids[API]}), 404, "not-found")
        for path in (f"{API}/sessions", f"{API}/find?q=zanzibar", KERNELS):
            assert not re.search("zanzibar|anns", other.get(path).text)
    assert ann.get(session).json()["title"] == "secret plans"
    ann.post(f"{session}/memory", json={"text": "the launch is in May"})
    theirs = new_session(bob)
    assert bob.get(f"{theirs}/memory").json()["facts"] == []
    problem(bob.get(f"{theirs}/messages/1"), 404, "not-found")
    assert bob.post(KERNELS, json={"session_id": "anns"}).status_code == 201, "ids are free"


def test_project_models_and_searches_are_for_admins(
    server: Served, document: dict[str, Any], operations: list[Described]
) -> None:
    user = server.client(server.accounts.add("user").text)
    own = re.compile(rf"(?!GET {API}/model$)\w+ {API}/(searches|settings|doctor|models?\b)")
    found = [one for one in operations if own.match(f"{one.method} {one.path}")]
    assert len(found) > 12
    for one in found:
        problem(send(user, one, document), 404, "not-found")


def test_a_user_has_one_share_at_all_doors(server: Served) -> None:
    token = server.accounts.add("greedy", quota=Quota(kernels=1, requests=3, sessions=4)).text
    greedy = server.client(token)
    assert greedy.post(KERNELS, json={"session_id": "own"}).status_code == 201
    session = new_session(greedy)
    refused = greedy.post(f"{session}/messages", json={"text": "1", "kind": "code"})
    assert "greedy uses 1 of 1 (kernels)" in problem(refused, 429, "quota")["detail"]
    chat = {"messages": [{"role": "user", "content": "x"}]}
    problem(greedy.post("/v1/chat/completions", json=chat), 429, "quota")

    spent = server.accounts.add("poor", quota=Quota(tokens=0)).text

    async def call(token: str, tool: str, **arguments: str) -> str:
        async with over_http(server.url, token) as client:
            return await failure(client, tool, **arguments)

    assert "(kernels)" in asyncio.run(call(token, "run_code", code="1"))
    assert "tokens" in asyncio.run(call(spent, "ask", question="x"))
    made = [greedy.post(f"{API}/sessions", json={}) for _ in range(5)]
    assert "(sessions)" in problem(made[-1], 429, "quota")["detail"], "nothing was asked in four"
    other = f"{API}/sessions/{made[0].json()['session_id']}"  # a session that is read stays open
    with ExitStack() as streams:
        for _ in range(3):
            streams.enter_context(greedy.stream("GET", f"{other}/events"))
        refused = greedy.get(f"{API}/sessions")
        assert "greedy uses 3 of 3 (requests)" in problem(refused, 429, "quota")["detail"]
        assert server.client("").get("/api/v1/health").status_code == 200
        assert server.client().get(f"{API}/sessions").status_code == 200
        assert greedy.post(f"{session}/stop", json={}).status_code == 200, "ends are admitted"
        assert greedy.delete(f"{KERNELS}/own").status_code == 200
    await_answer(greedy, f"{API}/sessions", lambda answer: answer.status_code == 200)
    assert "1" in ask(greedy, session, "1", kind="code")["answer"]
    assert greedy.post(f"{session}/release").status_code == 204
    listed = greedy.get(f"{API}/sessions").json()["sessions"]
    states = {one["session_id"]: one["state"] for one in listed}
    assert states[session.rpartition("/")[2]] == "stored", "a release gives everything back"
