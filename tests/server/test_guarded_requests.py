"""The checks in front of every operation: names, origins, tokens, bodies, rates."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import httpx2
import pytest
from pydantic import BaseModel
from served import Served, problem, served

from taskweaver.server.errors import RequestRefused, ServerError
from taskweaver.server.gate import FallingCounts
from taskweaver.server.operations import BYTES_TYPE, Call, Door, operation
from taskweaver.server.serving import listen
from taskweaver.server.transfer import explained


class Word(BaseModel):
    """A word."""

    word: str


class EchoDoor(Door):
    """A door with an operation of each kind."""

    statuses = MappingProxyType({ServerError: 409})
    is_closed = False

    @operation("POST", "/echo", "Echo", body_limit=1000)
    async def echo(self, _call: Call, body: Word) -> Word:
        """Return the body."""
        return body

    @operation("GET", "/who", "The user")
    @operation("GET", "/open", "The user", is_public=True)
    async def who(self, call: Call) -> Word:
        """Return the name of the user."""
        return Word(word=call.user.name)

    @operation("POST", "/act/{name}", "Act")
    async def act(self, call: Call) -> Word:
        """Fail in the way that the path names."""
        if call.path("name") == "known":
            raise ServerError("It does not fit.")
        raise ValueError("a detail of the inside")

    @operation("PUT", "/bytes", "Count", raw=BYTES_TYPE)
    async def count(self, call: Call) -> Word:
        """Return the size of the body."""
        size = 0
        async for chunk in call.chunks(100_000):
            size += len(chunk)
        return Word(word=str(size))

    async def close(self) -> None:
        """Note the end."""
        self.is_closed = True


pytestmark = pytest.mark.usefixtures("nothing_left_by_file")  # a server and its threads are shared


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    door = EchoDoor()
    with served([door], tmp_path_factory.mktemp("echo"), ["Team.example.org"]) as running:
        yield running
    assert door.is_closed


@pytest.fixture
def client(server: Served) -> httpx2.Client:
    return server.client()


def test_a_request_id_is_kept_or_made(client: httpx2.Client) -> None:
    assert client.get("/who", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    for odd in ("", "a b", "x" * 65, "<script>"):
        made = client.get("/who", headers={"X-Request-ID": odd}).headers["x-request-id"]
        assert made.isalnum()
        assert made != odd


def test_a_rebound_name_is_refused(client: httpx2.Client) -> None:
    odd = ("a@b:c", "a@localhost", "localhost:1:2", "", "[", "[::2]")
    for host in ("evil.example:80", "localhost.evil.example", *odd):
        problem(client.get("/open", headers={"Host": host}), 421, "host")
    for host in ("localhost:1", "127.0.0.1", "[::1]:8", "team.example.org"):
        assert client.get("/open", headers={"Host": host}).status_code == 200


def test_pages_of_other_origins_are_refused(server: Served, client: httpx2.Client) -> None:
    own = urlsplit(server.url).netloc
    for origin in ("https://evil.example", "null", f"http://localhost:{own.rpartition(':')[2]}"):
        told = problem(client.get("/open", headers={"Origin": origin}), 403, "origin")
        assert f"Origin is {origin!r}, and Host is {own!r}" in told["detail"]
    assert client.get("/open", headers={"Origin": server.url}).status_code == 200
    for site, status in [("cross-site", 403), ("same-site", 403), ("same-origin", 200)]:
        assert client.get("/open", headers={"Sec-Fetch-Site": site}).status_code == status
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=visit).status_code == 404, "of the page, which is not here"
    problem(client.get("/open", headers=visit), 403, "origin")
    preflight = client.options("/echo", headers={"Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 405
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_a_token_is_needed_and_a_cookie_is_none(server: Served) -> None:
    stranger = server.client("")
    missing = stranger.get("/who")
    problem(missing, 401, "token-missing")
    assert missing.headers["www-authenticate"] == "Bearer"
    cookie = {"Cookie": f"token={server.token.text}"}
    problem(stranger.get("/who", headers=cookie), 401, "token-missing")
    problem(stranger.get(f"/who?token={server.token.text}"), 401, "token-missing")
    assert stranger.get("/open").json() == {"word": ""}
    assert stranger.get("/who", headers={"X-API-Key": server.token.text}).json()["word"] == "local"


def test_wrong_tokens_are_refused_and_recorded(server: Served) -> None:
    text = server.token.text
    for wrong in (text[:-1], text + "x", f"tw-{server.token.id}-", "tw-ffffffffffff-a"):
        problem(server.client(wrong).get("/who"), 401, "token-invalid")
    problem(server.client("x").get("/open"), 401, "token-invalid")
    outcomes = [entry.outcome for entry in server.accounts.audit(1000)]
    assert "wrong token (1 lately)" in outcomes
    assert "wrong token (4 lately)" in outcomes
    assert server.client().get("/who").status_code == 200, "a right token is not slowed"


def test_users_have_tokens_until_they_are_removed(server: Served) -> None:
    first = server.accounts.add("ann").text
    assert server.client(first).get("/who").json() == {"word": "ann"}
    second = server.accounts.renew_token("ann").text
    problem(server.client(first).get("/who"), 401, "token-invalid")
    assert server.client(second).get("/who").json() == {"word": "ann"}
    server.accounts.remove("ann")
    problem(server.client(second).get("/who"), 401, "token-invalid")


def test_only_json_of_a_limited_size(client: httpx2.Client) -> None:
    assert client.post("/echo", json={"word": "a"}).json() == {"word": "a"}
    charset = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post("/echo", content=b'{"word": "b"}', headers=charset).status_code == 200
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = client.post("/echo", content=b"{}", headers={"Content-Type": media_type})
        problem(answer, 415, "media-type")
    problem(client.post("/echo"), 415, "media-type")
    problem(client.post("/echo", json={"word": "a" * 1000}), 413, "too-large")
    chunked = client.post("/echo", content=(b"a" * 300 for _ in range(9)), headers=charset)
    problem(chunked, 413, "too-large")
    problem(client.post("/act/x", json={}), 413, "too-large")
    for content, status in [(b"", 400), (b"\xff", 400), (b"1", 422), (b'{"word": "\\ud800"}', 400)]:
        assert client.post("/echo", content=content, headers=charset).status_code == status


def test_bytes_are_counted_while_they_come(client: httpx2.Client) -> None:
    headers = {"Content-Type": "application/octet-stream"}
    assert client.put("/bytes", content=b"a" * 100_000, headers=headers).json()["word"] == "100000"
    chunked = client.put("/bytes", content=(b"a" * 1000 for _ in range(101)), headers=headers)
    problem(chunked, 413, "too-large")
    for headers in ({}, {"Content-Type": "text/csv"}, {"Content-Type": "application/json"}):
        assert client.put("/bytes", content=b"a,b", headers=headers).json()["word"] == "3"
    form = problem(client.put("/bytes", files={"file": b"a,b"}), 415, "media-type")
    assert "application/octet-stream" in form["detail"]


def test_errors_are_documents_without_the_inside(server: Served, client: httpx2.Client) -> None:
    assert problem(client.post("/act/known"), 409, "server-error")["detail"] == "It does not fit."
    failed = problem(client.post("/act/unknown"), 500, "internal")
    assert "inside" not in failed["detail"]
    log = server.log.read_text()
    assert failed["request_id"] in log
    assert "a detail of the inside" in log
    problem(client.get("/none"), 404, "not-found")
    problem(client.get("/who/"), 404, "not-found")
    problem(client.delete("/who"), 405, "method-not-allowed")


def test_writing_requests_are_in_the_audit_log(server: Served, client: httpx2.Client) -> None:
    client.post("/echo", json={"word": "a"}, headers={"X-Request-ID": "audited"})
    client.get("/who", headers={"X-Request-ID": "unaudited"})
    entries = {entry.request_id: entry for entry in server.accounts.audit(1000)}
    assert entries["audited"].user == "local"
    assert (entries["audited"].action, entries["audited"].outcome) == ("POST /echo", "200")
    assert "unaudited" not in entries


def test_headers_of_every_answer(client: httpx2.Client) -> None:
    for path in ("/who", "/none"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_too_many_requests_of_a_token() -> None:
    now = [0.0]
    rate = FallingCounts(2.0, 3, lambda: now[0])
    for _ in range(3):
        rate.count("a")
    with pytest.raises(ServerError) as caught:
        rate.count("a")
    assert getattr(caught.value, "retry_after_s", None) == 0.5
    rate.count("b")
    now[0] = 0.5
    rate.count("a")


def test_the_description_has_every_operation_once(client: httpx2.Client) -> None:
    described = client.get("/openapi.json").json()
    assert set(described["paths"]) == {"/echo", "/who", "/open", "/act/{name}", "/bytes"}
    echo = described["paths"]["/echo"]["post"]
    reference = {"$ref": "#/components/schemas/Word"}
    assert echo["requestBody"]["content"] == {"application/json": {"schema": reference}}
    assert echo["responses"]["200"]["content"] == {"application/json": {"schema": reference}}
    assert echo["responses"]["415"]["content"].keys() == {"application/problem+json"}
    assert not {"404", "409"} & echo["responses"].keys()  # no placeholder, no other named thing
    assert {"404", "409"} <= described["paths"]["/act/{name}"]["post"]["responses"].keys()
    assert echo["security"] == [{"bearer": []}, {"key": []}]
    assert described["paths"]["/open"]["get"]["security"] == []
    assert {"Word", "ProblemDocument"} <= described["components"]["schemas"].keys()


def test_a_port_that_is_taken_is_an_error(server: Served) -> None:
    with pytest.raises(ServerError, match="Choose another --port"):
        listen("127.0.0.1", urlsplit(server.url).port or 0)


@pytest.mark.parametrize("is_behind_proxy", [True, False])
def test_an_address_that_a_header_names_is_believed_of_a_proxy_alone(
    tmp_path: Path, is_behind_proxy: bool
) -> None:
    with served([EchoDoor()], tmp_path, is_behind_proxy=is_behind_proxy) as running:
        headers = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
        running.client(**headers).post("/echo", json={"word": "a"})
        (entry,) = running.accounts.audit(10)
        assert entry.address == ("203.0.113.7" if is_behind_proxy else "127.0.0.1")


def test_a_file_is_not_called_missing_when_there_is_no_descriptor() -> None:
    with pytest.raises(RequestRefused) as refused, explained("a.txt"):
        raise OSError(errno.EMFILE, "Too many open files")
    assert (refused.value.status, refused.value.kind) == (503, "busy")
    assert refused.value.retry_after_s
