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
def client(kernels: Served) -> httpx2.Client:
    made = kernels.client()
    assert made.post("/api/v1/sessions", json={"session_id": "files"}).status_code == 201
    return made


@pytest.fixture(scope="module")
def cwd(client: httpx2.Client) -> Path:
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
    ups = ("../", "%2e%2e/", "%2e%2e%2f", "..%2f", "..%5c", "%252e%252e%252f", "....//")
    return [
        *(relative.replace("../", up) for up in ups),
        *(f"sub/../{relative}", f"./{relative}", f"{relative}%00.png", f"file://{secret}"),
        *(str(secret), f"/{secret}", str(secret).replace("/", "%2f")),
        *("link", "folder-link/secret.txt", "chain"),
    ]


@pytest.fixture
def links(cwd: Path, secret: Path) -> None:
    """Put links out of the working directory there, as code could."""
    targets = {"link": secret, "folder-link": secret.parent, "chain": "link", "root": "/"}
    for name, target in targets.items():
        (cwd / name).unlink(missing_ok=True)
        (cwd / name).symlink_to(target)


@pytest.mark.usefixtures("links")
def test_no_path_leads_out(kernels: Served, cwd: Path, secret: Path) -> None:
    for way in ways_to(secret, cwd):
        for base in (FILES, ARTIFACTS):
            status, content = raw(kernels, "GET", f"{base}/{way}")
            assert status == 404, way
            assert SECRET not in content
        status, _ = raw(kernels, "PUT", f"{FILES}/{way}", b"overwritten")
        assert status in {200, 404}, way
        status, _ = raw(kernels, "DELETE", f"{FILES}/{way}")
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
    for name in ("..", ".", "", "/", "a\0b"):
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


def test_an_upload_that_breaks_off_leaves_no_file(kernels: Served, client: httpx2.Client) -> None:
    headers = {"Content-Type": "application/octet-stream", "If-None-Match": "*"}
    assert client.put(f"{FILES}/old.bin", content=b"old", headers=headers).status_code == 200
    taken = client.put(f"{FILES}/old.bin", content=b"new", headers=headers)
    problem(taken, 409, "file-exists")
    headers = {"X-API-Key": kernels.token.text, "Content-Length": "1000"} | headers
    for name in ("half.bin", "old.bin"):  # begun, and given up
        connection = http.client.HTTPConnection(urlsplit(kernels.url).netloc, timeout=PATIENCE_S)
        connection.putrequest("PUT", f"{FILES}/{name}")
        for header in ("X-API-Key", "Content-Type", "Content-Length"):
            connection.putheader(header, headers[header])
        connection.endheaders(b"only this")
        connection.close()
    names = {item["path"] for item in client.get(FILES).json()["files"]}
    assert "half.bin" not in names
    assert client.get(f"{FILES}/old.bin").content == b"old"
    client.put(f"{FILES}/done", content=b"1", headers={"Content-Type": "application/octet-stream"})
    left = client.get(FILES).json()["files"]
    assert not [item for item in left if item["path"].endswith(".partial")]
