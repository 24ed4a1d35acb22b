"""A small hub on this machine, which `huggingface_hub` takes for the real one."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REVISIONS = ("main", "v1", COMMIT)
_INFO = re.compile(r"/api/(\w+)s/([\w.-]+/[\w.-]+)/(revision|tree)/([^/?]+)(?:\?.*)?")
_FILE = re.compile(r"(?:/(dataset|space)s)?/([\w.-]+/[\w.-]+)/resolve/[^/]+/([^?]+)(?:\?.*)?")


@dataclass
class Hub:
    """What the hub has, and how it behaves.

    Attributes:
        files: Its files, by ``type:repository``, then by path.
        missing: Files that are listed, and not there.
        cut: Of which files half is sent, and how often; then they are whole.
        asked: What was asked for.
        url: Where it is.
    """

    files: Mapping[str, Mapping[str, bytes]]
    missing: frozenset[str] = frozenset()
    cut: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""


class _Server(ThreadingHTTPServer):
    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub
        hub.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.hub.asked.append(f"{self.command} {self.path}")
        if info := _INFO.fullmatch(self.path):
            self._info(*info.groups())
        elif file := _FILE.fullmatch(self.path):
            self._file(f"{file[1] or 'model'}:{file[2]}", file[3])
        else:
            self._refuse("EntryNotFound")

    def _info(self, kind: str, name: str, what: str, revision: str) -> None:
        hub = self.server.hub
        files = hub.files.get(f"{kind}:{name}")
        if files is None:
            self._refuse("RepoNotFound")
        elif revision not in REVISIONS:
            self._refuse("RevisionNotFound")
        elif what == "revision":
            self._send({"id": name, "sha": COMMIT, "siblings": [], "private": False})
        else:
            sizes = {path: len(data) for path, data in files.items()}
            sizes |= dict.fromkeys(hub.missing, 1)
            usual = {"type": "file", "oid": "0" * 40}
            self._send([usual | {"path": path, "size": size} for path, size in sizes.items()])

    def _file(self, repository: str, path: str) -> None:
        hub = self.server.hub
        data = hub.files.get(repository, {}).get(path)
        if data is None:
            self._refuse("EntryNotFound")
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{sha256(data).hexdigest()}"')
        self.end_headers()
        if self.command == "GET":
            is_cut = hub.cut.get(path, 0) > 0
            hub.cut[path] = hub.cut.get(path, 0) - 1
            self.wfile.write(data[: len(data) // 2] if is_cut else data)

    def _refuse(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve a hub while the ``with`` lasts."""
    with _Server(hub) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
