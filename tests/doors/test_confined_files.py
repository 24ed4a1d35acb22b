"""Files of the kernel API: every way out of a working directory, ranges, and sizes."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from patience import PATIENCE_S
from served import Served, problem

FILES = "/api/v1/sessions/files/files"
ARTIFACTS = "/api/v1/sessions/files/artifacts"
SECRET = b"a secret of the host"


@pytest.fixture(scope="module")
def client(server: Served) -> httpx2.Client:
    """Give a client with a session."""
    made = server.client()
    assert made.post("/api/v1/sessions", json={"session_id": "files"}).status_code == 201
    return made


@pytest.fixture(scope="module")
def cwd(client: httpx2.Client) -> Path:
    """Give the session's working directory."""
    return Path(client.get("/api/v1/sessions/files").json()["cwd"])


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Path]:
    """Give a file outside, and check that it is as before."""
    file = tmp_path / "secret.txt"
    file.write_bytes(SECRET)
    yield file
    assert file.read_bytes() == SECRET
    assert os.listdir(tmp_path) == ["secret.txt"]  # noqa: PTH208 - the names matter


def raw(server: Served, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Send a request whose path is not touched by a client library."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
    headers = {"X-API-Key": server.token.text, "Content-Type": "application/octet-stream"}
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def ways_to(secret: Path, cwd: Path) -> list[str]:
    relative = os.path.relpath(secret, cwd)
    return [
        relative,
        relative.replace("../", "%2e%2e/"),
        relative.replace("../", "%2e%2e%2f"),
        relative.replace("../", "..%2f"),
        relative.replace("../", "..%5c"),
        relative.replace("../", "%252e%252e%252f"),
        relative.replace("../", "....//"),
        f"sub/../{relative}",
        f"./{relative}",
        str(secret),
        f"/{secret}",
        str(secret).replace("/", "%2f"),
        f"file://{secret}",
        f"{relative}%00.png",
        "link",
        "folder-link/secret.txt",
        "chain",
    ]


@pytest.fixture
def links(cwd: Path, secret: Path) -> None:
    """Put links out of the working directory there, as code could."""
    for name, target in [
        ("link", secret), ("folder-link", secret.parent), ("chain", Path("link")),
        ("root", Path("/")),
    ]:  # fmt: skip
        (cwd / name).unlink(missing_ok=True)
        (cwd / name).symlink_to(target)


@pytest.mark.usefixtures("links")
def test_no_path_leads_out(server: Served, client: httpx2.Client, cwd: Path, secret: Path) -> None:
    del client
    for way in ways_to(secret, cwd):
        for base in (FILES, ARTIFACTS):
            status, content = raw(server, "GET", f"{base}/{way}")
            assert status == 404, way
            assert SECRET not in content
        status, _ = raw(server, "PUT", f"{FILES}/{way}", b"overwritten")
        assert status in {200, 404}, way
        status, _ = raw(server, "DELETE", f"{FILES}/{way}")
        assert status in {204, 404, 415}, way
        assert secret.read_bytes() == SECRET, way
    assert not list(cwd.parent.glob("*.txt"))


@pytest.mark.usefixtures("links")
def test_links_are_neither_listed_nor_followed_in_an_upload(
    client: httpx2.Client, cwd: Path
) -> None:
    listed = [item["path"] for item in client.get(FILES).json()["files"]]
    assert not {"link", "chain", "folder-link/secret.txt"} & set(listed)
    answer = client.post(FILES, json={"filename": "link", "content": "x", "encoding": "text"})
    assert answer.status_code == 200
    assert (cwd / "link").read_text() == "x", "the link is replaced by the file"
    assert not (cwd / "link").is_symlink()
    for name in ("../up.txt", "/etc/up.txt", "a\\..\\up.txt"):
        path = client.post(FILES, json={"filename": name, "content": "x", "encoding": "text"})
        assert Path(path.json()["path"]) == cwd / "up.txt"


@pytest.mark.parametrize("name", ["..", ".", "", "/", "a\0b"])
def test_names_that_are_none(client: httpx2.Client, name: str) -> None:
    answer = client.post(FILES, json={"filename": name, "content": "x", "encoding": "text"})
    problem(answer, 404, "not-found")


def test_a_large_file_goes_up_and_down_in_pieces(client: httpx2.Client, cwd: Path) -> None:
    content = os.urandom(5 << 20)
    pieces = (content[start : start + 70_000] for start in range(0, len(content), 70_000))
    headers = {"Content-Type": "application/octet-stream"}
    path = f"{FILES}/deep/folder/big%20one.bin"
    answer = client.put(path, content=pieces, headers=headers)
    assert answer.json()["path"] == "deep/folder/big one.bin"
    assert (cwd / "deep/folder/big one.bin").stat().st_mtime_ns == answer.json()["mtime_ns"]
    assert client.get(path).content == content
    for header, expected in [
        ("bytes=0-9", content[:10]),
        ("bytes=10-", content[10:]),
        ("bytes=-7", content[-7:]),
        (f"bytes={len(content) - 1}-99999999999", content[-1:]),
    ]:
        part = client.get(path, headers={"Range": header})
        assert (part.status_code, part.content) == (206, expected)
        assert part.headers["content-range"].endswith(f"/{len(content)}")
    problem(client.get(path, headers={"Range": f"bytes={len(content)}-"}), 416, "range")
    for odd in ("bytes=a-b", "bytes=0-1,3-4", "lines=1-2", "bytes=-"):
        assert client.get(path, headers={"Range": odd}).status_code == 200
    assert client.delete(path).status_code == 204
    problem(client.get(path), 404, "not-found")


def test_an_upload_that_breaks_off_leaves_no_file(server: Served, client: httpx2.Client) -> None:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
    connection.putrequest("PUT", f"{FILES}/half.bin")
    for name, value in [
        ("X-API-Key", server.token.text), ("Content-Type", "application/octet-stream"),
        ("Content-Length", "1000"),
    ]:  # fmt: skip
        connection.putheader(name, value)
    connection.endheaders(b"only this")
    connection.close()
    names = {item["path"] for item in client.get(FILES).json()["files"]}
    assert "half.bin" not in names
    client.put(f"{FILES}/done", content=b"1", headers={"Content-Type": "application/octet-stream"})
    left = client.get(FILES).json()["files"]
    assert not [item for item in left if item["path"].endswith(".partial")]
